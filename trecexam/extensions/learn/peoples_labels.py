"""People's ratings of whole passages as judgments to learn from."""

from __future__ import annotations

from collections.abc import Sequence

from converters.records import Qrel
from trecexam.line.assessment import Assessment
from trecexam.line.official import Official
from trecexam.line.relevance import relevance_thresholds


def label_of_rating(
    rating: int, max_rating: int, min_rating: int, labels: Sequence[int], min_relevant: int
) -> int:
    """Converts a rating 0..max_rating to the scale of the judgments.

    From `min_rating` on a rating is relevant, and from `min_relevant` on a judgment: relevant stays relevant.
    On either side ratings are spread evenly over the labels, the lowest and the highest of both meeting. On
    one scale with one threshold it is the rating itself.

    Args:
        labels: of the judgments; 0 and `min_relevant` need not be among them.
    """
    high = rating >= min_rating
    side = sorted(label for label in {0, min_relevant, *labels} if (label >= min_relevant) == high)
    step, n = (rating - min_rating, max_rating - min_rating + 1) if high else (rating, min_rating)
    # Half a step rounds up.
    return side[(2 * step * (len(side) - 1) + n - 1) // max(1, 2 * (n - 1))]


def with_peoples_labels(track: Assessment, official: Official | None) -> tuple[Official | None, int]:
    """The judgments, with people's ratings of unjudged pooled passages added, and their number.

    Judgments on the scale of [judging] are on that of the official ones, and stay as they are; ratings on the
    grader's scale are put on it, see `label_of_rating`. Without any judgment on either the ratings are the
    judgments, as they are; None where there is nothing at all.
    """
    at, best = relevance_thresholds(track), track.traits.scale.max_rating
    judged = {} if official is None else official.judged
    own_best = track.config.judging.best
    scale = {label for labels in judged.values() for label in labels.values()}
    scale |= set() if own_best is None else set(range(own_best + 1))
    labels = {
        (query_id, doc_id): label_of_rating(rating, best, at.min_rating, sorted(scale), at.min_relevant)
        if scale
        else rating
        for query_id, human in track.overrides.queries.items()
        for doc_id, rating in human.passages.items()
    }
    for query_id, human in track.judgments.queries.items():
        labels.update({(query_id, doc_id): label for doc_id, label in human.passages.items()})
    rows = [Qrel(*key, label) for key, label in labels.items() if key[1] not in judged.get(key[0], ())]
    if official is None:
        source = "judgments.tsv" if track.judgments.queries else "overrides.tsv"
        return (Official(source, tuple(rows)), len(rows)) if rows else (None, 0)
    return Official(official.source, (*official.rows, *rows)), len(rows)
