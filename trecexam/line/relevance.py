"""From which label and from which judgment on a passage is relevant: one threshold where the scale is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from trecexam.line.official import official_judgments

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment, Part


_PARTS: tuple[Part, ...] = ("cells", "official", "settings")


class RelevanceThresholds(NamedTuple):
    """The thresholds of both sides.

    Attributes:
        min_rating: from this rating on, a passage is relevant to the grader.
        min_relevant: from this official judgment on, a passage is relevant.
        max_rating, max_judgment: the best of either scale; None: no judgments.
        same_scale: labels and judgments are both on 0..`max_rating`.
    """

    min_rating: int
    min_relevant: int
    max_rating: int
    max_judgment: int | None
    same_scale: bool


def official_measures(track: Assessment) -> list[str]:
    """The measures that the official judgments are evaluated with: the settings', else nDCG@10, AP and P.

    AP and P count from the judgment on from which a passage is relevant: where labels and judgments are on
    the same scale that is the threshold of both sides, see `relevance_thresholds`.
    """
    settings = track.config.scores
    if track.official is None or settings.official_measures is not None:
        return track.config.official_measures()

    def threshold() -> int | None:
        at = relevance_thresholds(track)
        return at.min_relevant if at.same_scale else None

    return track.config.official_measures(track.derived("threshold of judgments", _PARTS, threshold))


def relevance_thresholds(
    track: Assessment, min_rating: int | None = None, min_relevant: int | None = None
) -> RelevanceThresholds:
    """The thresholds of labels and judgments, equal by default where both are on the same scale.

    The scale of labels is the grader's; that of judgments goes from 0 to the best one in the whole file of
    judgments, of whichever queries, or to min_relevant where that is above it: nobody gave the best one yet.
    Labels that count items have no scale in common with judgments.

    On the same scale a threshold that is given holds for both sides unless each has one; without any it is
    the greater of the settings `min_rating` and `min_relevant`. On scales that differ each side has the
    given one, else its setting.

    Args:
        min_rating, min_relevant: in place of the settings.
    """
    scores = track.config.scores
    # A grader of one's own may go beyond the scale that it names.
    given = (int(q.ratings.max(initial=0)) for q in track.ratings(human=False))
    max_rating = max(track.traits.scale.max_rating, *given)
    judged = () if track.official is None else official_judgments(track).judged.values()
    rating, relevant = scores.min_rating, scores.min_relevant
    max_judgment = max((label for labels in judged for label in labels.values()), default=None)
    if max_judgment is not None:
        max_judgment = max(max_judgment, relevant if min_relevant is None else min_relevant)
    same_scale = scores.label != "count" and max_rating == max_judgment
    if same_scale:
        rating = relevant = max(rating, relevant)
        rating = rating if min_relevant is None else min_relevant
        relevant = relevant if min_rating is None else min_rating
    return RelevanceThresholds(
        rating if min_rating is None else min_rating,
        relevant if min_relevant is None else min_relevant,
        max_rating,
        max_judgment,
        same_scale,
    )
