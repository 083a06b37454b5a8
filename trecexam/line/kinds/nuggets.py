"""Nuggets: whether a response says each nugget of its query, wholly or in part, as TREC RAG assigns them."""

from __future__ import annotations

from trecexam.line.kind import Kind, MeasureFacts
from trecexam.line.kinds.default_measures import default_measures, nugget_scores


def _scores(facts: MeasureFacts) -> tuple[str, ...]:
    return nugget_scores(facts, always=True)


KIND = Kind(
    "nuggets",
    frozenset({"nugget"}),
    {"track": {"unit": "response"}, "grader": {"prompt": "NuggetAssign"}},
    default_measures,
    _scores,
)
