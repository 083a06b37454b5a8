"""Rubric labels of one query's pool as an array."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.labels import LabelRule
from trecexam.scores.ratings import QueryRatings

#: Stands where a pooled passage has no label.
UNJUDGED = int(np.iinfo(np.int32).min)


def rubric_labels(q: QueryRatings, rule: LabelRule, min_rating: int, min_answers: int) -> NDArray[np.int32]:
    """The labels of `trecexam.scores.labels.labels`, in the order of q.doc_ids.

    Returns:
        int32 of shape (len(q.doc_ids),); `UNJUDGED` where a passage has no rating, of an item or as a whole.

    Raises:
        ValueError: an unknown rule, or min_answers below 1.
    """
    if min_answers < 1:
        raise ValueError(f"min_answers = {min_answers}: at least 1 needed")
    if rule in ("max", "expected"):
        labels = _kth_highest(q.ratings, min_answers)
    elif rule == "count":
        reached = np.count_nonzero(q.ratings >= max(min_rating, 0), axis=1)
        labels = np.where(reached >= min_answers, reached, 0).astype(np.int32)
    else:
        raise ValueError(f'unknown label rule {rule!r}; there are "max", "count" and "expected"')
    labels[~(q.ratings >= 0).any(axis=1)] = UNJUDGED
    for doc_id, rating in q.human.items():
        row = q.doc_ids.index(doc_id)
        if rule != "count":
            labels[row] = rating
        else:
            labels[row] = max(int(reached[row]), min_answers) if rating >= min_rating else 0
    return labels


def _kth_highest(ratings: NDArray[np.int8], k: int) -> NDArray[np.int32]:
    """Of each passage the k-th highest rating, 0 where there are fewer."""
    n_docs, n_items = ratings.shape
    if k > n_items:
        return np.zeros(n_docs, np.int32)
    highest = ratings.max(axis=1) if k == 1 else np.sort(ratings, axis=1)[:, n_items - k]
    return np.maximum(highest, 0).astype(np.int32)
