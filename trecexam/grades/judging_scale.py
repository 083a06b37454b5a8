"""The scale on which people judge whole passages: that of [judging], else that of the official judgments."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from converters.records import Qrel
from trecexam.scores.ratings import MAX_RATING

if TYPE_CHECKING:
    from trecexam.config.track_config import TrackConfig

#: Names of the labels 0, 1, ... by the highest label. Those of 0..3 are TREC Deep Learning's.
_NAMES = {
    1: ("not relevant", "relevant"),
    2: ("not relevant", "relevant", "highly relevant"),
    3: ("irrelevant", "related", "highly relevant", "perfectly relevant"),
    4: ("not relevant", "slightly relevant", "moderately relevant", "highly relevant", "fully relevant"),
    5: (
        "not relevant",
        "slightly relevant",
        "somewhat relevant",
        "moderately relevant",
        "highly relevant",
        "perfectly relevant",
    ),
}
#: Names of the rubric's ratings 0..5, after the grader's published prompt.
_RUBRIC = (
    "not relevant or complete at all",
    "minimally relevant or complete",
    "of limited relevance and completeness",
    "partially relevant and complete",
    "mostly relevant and complete",
    "highly relevant and complete",
)


@dataclass(frozen=True)
class JudgingScale:
    """The scale of people's judgments of whole passages: names of 0, 1, ..., and what sets it."""

    names: tuple[str, ...]
    source: str

    @property
    def best(self) -> int:
        """The highest judgment."""
        return len(self.names) - 1

    def __str__(self) -> str:
        return f"0..{self.best}"


def judging_scale(config: TrackConfig, official: Collection[Qrel] | None) -> JudgingScale | None:
    """Return the scale on which people judge whole passages; None: on the grader's scale.

    The scale of [judging] comes first. Else it is 0 to the highest official label, or to `min_relevant` if
    that is higher. Tracks of whole responses, and official labels above 5, have no such scale.
    """
    if config.judging.scale is not None:
        return JudgingScale(tuple(config.judging.scale), "`scale` in [judging]")
    if not official or config.track.unit == "response":
        return None
    best = max(1, config.scores.min_relevant, *(row.relevance for row in official))
    return JudgingScale(_NAMES[best], "the scale of the official judgments") if best <= MAX_RATING else None


def rubric_names(max_rating: int) -> tuple[str, ...]:
    """Return the names of the ratings 0..`max_rating` of a whole passage on a grader's scale."""
    return _RUBRIC if max_rating == MAX_RATING else _NAMES.get(max_rating, ())
