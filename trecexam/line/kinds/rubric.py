"""Rubrics: how well a text answers each question, or covers each nugget, of its query's test bank."""

from __future__ import annotations

from trecexam.line.kind import Kind, MeasureFacts
from trecexam.line.kinds.default_measures import default_measures


def _coverage(facts: MeasureFacts) -> tuple[str, ...]:
    return (f"Cover(rel={facts.config.scores.min_rating})@{facts.config.track.depth}",)


KIND = Kind("rubric", frozenset({"question", "nugget"}), {}, default_measures, _coverage)
