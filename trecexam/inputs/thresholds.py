"""Thresholds: from which label, and from which judgment on, a passage is relevant."""

from __future__ import annotations

from typing import NamedTuple

from trecexam.config.sections import ScoresSection
from trecexam.scores.labels import LabelRule
from trecexam.scores.ratings import MAX_RATING


class Thresholds(NamedTuple):
    """The labels and judgments from which on a passage is relevant.

    Attributes:
        min_rating, min_answers, rule: as `trecexam.scores.labels.labels` takes them.
        min_relevant: from this official judgment on, a passage is relevant.
        max_rating: the best of the grader's scale.
        same_scale: labels and judgments are both on 0..`max_rating`.
        reason: why both sides have one threshold, or each its own.
    """

    min_rating: int
    min_answers: int
    min_relevant: int
    rule: LabelRule = "max"
    max_rating: int = MAX_RATING
    same_scale: bool = False
    reason: str = ""

    def __str__(self) -> str:
        rating, answers, relevant = self[:3]
        return f"min_rating {rating}, min_answers {answers}, min_relevant {relevant}"

    @property
    def in_words(self) -> str:
        """The label and the judgment from which on a passage counts as relevant."""
        if self.rule == "count":
            label = f"label {self.min_answers} or more (items rated {self.min_rating} or better)"
        elif self.min_answers > 1:
            label = f"label {self.min_rating} or more (its {self.min_answers} best ratings are that high)"
        else:
            label = f"label {self.min_rating} or more"
        return f"{label} counts as relevant; judgment {self.min_relevant} or more counts as relevant"


def thresholds_of(
    scores: ScoresSection,
    max_rating: int,
    best: int | None,
    min_rating: int | None = None,
    min_relevant: int | None = None,
    min_answers: int | None = None,
) -> Thresholds:
    """Return the thresholds of labels and judgments, equal by default where both are on the same scale.

    The scale of labels is the grader's; that of judgments goes from 0 to the best one of all judgments, of
    whichever queries, or to min_relevant where that is above it: nobody gave the best one yet.
    Labels that count items have no scale in common with judgments.

    On the same scale a threshold that is given holds for both sides unless each has one; without any it is
    the greater of the settings `min_rating` and `min_relevant`. On scales that differ each side has the
    given one, else its setting.

    Args:
        max_rating, best: the best rating, and the best judgment; None without judgments.
        min_rating, min_relevant, min_answers: in place of the settings.
    """
    rating, relevant = scores.min_rating, scores.min_relevant
    max_judgment = None if best is None else max(best, relevant if min_relevant is None else min_relevant)
    same_scale = scores.label != "count" and max_rating == max_judgment
    if same_scale:
        both = max(rating, relevant)
        rating = both if min_relevant is None else min_relevant
        relevant = both if min_rating is None else min_rating
    at = Thresholds(
        rating if min_rating is None else min_rating,
        scores.min_answers if min_answers is None else min_answers,
        relevant if min_relevant is None else min_relevant,
        scores.label,
        max_rating,
        same_scale,
    )
    if at.rule == "count":
        reason = "labels count items, so each side has its own threshold"
    elif not same_scale:
        scale = f"labels are on the scale 0..{max_rating} and judgments on 0..{max_judgment}"
        reason = f"{scale}, so each side has its own threshold"
    else:
        is_one = at.min_rating == at.min_relevant
        meaning = "so both have the same threshold" if is_one else "but two different thresholds were given"
        reason = f"labels and judgments are both on the scale 0..{max_rating}, {meaning}"
        if min_rating is None and min_relevant is None:
            reason += (
                f", the greater of min_rating {scores.min_rating} and min_relevant {scores.min_relevant}"
            )
    return at._replace(reason=reason)
