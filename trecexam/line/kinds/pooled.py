"""The kinds that ask about each text of the pool: rubrics, nuggets of responses, relevance as such."""

from __future__ import annotations

from trecexam.bank.model import QUERY
from trecexam.line.kind import Kind, MeasureFacts
from trecexam.line.kinds.default_measures import default_measures, nugget_scores


def _coverage(facts: MeasureFacts) -> tuple[str, ...]:
    return (f"Cover(rel={facts.config.scores.min_rating})@{facts.config.track.depth}",)


def _nugget_scores(facts: MeasureFacts) -> tuple[str, ...]:
    return nugget_scores(facts, always=True)


def _retrieval(_: MeasureFacts) -> tuple[str, ...]:
    return ("nDCG@10",)


#: How well a text answers each question, or covers each nugget, of its query's test bank.
RUBRIC = Kind("rubric", frozenset({"question", "nugget"}), {}, default_measures, _coverage)
#: Whether a response says each nugget of its query, wholly or in part, as TREC RAG assigns them.
NUGGETS = Kind(
    "nuggets",
    frozenset({"nugget"}),
    {"track": {"unit": "response"}, "grader": {"prompt": "NuggetAssign"}},
    default_measures,
    _nugget_scores,
)
#: How well a text answers its query, as UMBRELA and the prompts of its kind ask.
RELEVANCE = Kind(
    "relevance", frozenset({QUERY}), {"grader": {"prompt": "UMBRELA"}}, default_measures, _retrieval
)
