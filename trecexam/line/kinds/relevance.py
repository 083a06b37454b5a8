"""Relevance as such: how well a text answers its query, as UMBRELA and the prompts of its kind ask."""

from __future__ import annotations

from trecexam.bank.asked import QUERY
from trecexam.line.kind import Kind, MeasureFacts
from trecexam.line.kinds.default_measures import default_measures


def _retrieval(_: MeasureFacts) -> tuple[str, ...]:
    return ("nDCG@10",)


KIND = Kind("relevance", frozenset({QUERY}), {"grader": {"prompt": "UMBRELA"}}, default_measures, _retrieval)
