"""What people say of passages as a whole on the page or by `override`, as judgments to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trecexam.learning.arithmetic.pooled import PooledQueryToLearn
from trecexam.line.loaded import LoadedTrack
from trecexam.line.official import Official
from trecexam.line.overrides import QueryOverrides


def label_of_rating(
    rating: int, max_rating: int, min_rating: int, labels: Sequence[float], min_relevant: int
) -> float:
    """A rating of 0..max_rating on the scale of the judgments.

    From `min_rating` on a rating is relevant, and from `min_relevant` on a judgment: relevant stays relevant.
    On either side ratings are spread evenly over the labels, the lowest and the highest of both meeting. On
    one scale with one threshold it is the rating itself.

    Args:
        labels: of the judgments; 0 and `min_relevant` need not be among them.
    """
    high = rating >= min_rating
    side = sorted(label for label in {0, min_relevant, *labels} if (label >= min_relevant) == high)
    place, n = (rating - min_rating, max_rating - min_rating + 1) if high else (rating, min_rating)
    # Half a step rounds up.
    return float(side[(2 * place * (len(side) - 1) + n - 1) // max(1, 2 * (n - 1))])


def with_peoples_labels(
    track: LoadedTrack, queries: Sequence[PooledQueryToLearn], official: Official | None
) -> tuple[tuple[PooledQueryToLearn, ...], int]:
    """The queries with what people say of passages that have no judgment, and of how many that is.

    Without any official judgment the ratings are the judgments, as they are.
    """
    scores, best = track.config.scores, track.traits.scale.max_rating
    labels = (
        [] if official is None else sorted({row.relevance for row in official.rows if row.relevance >= 0})
    )
    n = 0
    new = []
    for query in queries:
        rated = track.overrides.queries.get(query.passages.query_id, QueryOverrides()).passages
        judgments = query.judgments.copy()
        for at, doc_id in enumerate(query.doc_ids):
            rating = rated.get(doc_id)
            if rating is not None and np.isnan(judgments[at]):
                judgments[at] = (
                    label_of_rating(rating, best, scores.min_rating, labels, scores.min_relevant)
                    if labels
                    else rating
                )
                n += 1
        passages = replace(query.passages, judgments=judgments[query.rows])
        new.append(replace(query, judgments=judgments, passages=passages))
    return tuple(new), n
