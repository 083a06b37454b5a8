"""Expected labels of passages from the probabilities of uncertain ratings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.ratings import MAX_RATING, QueryRatings

Floats = NDArray[np.float64]


def usable(stated: Floats) -> NDArray[np.bool_]:
    """Return True for rows (last axis) that are valid probabilities: none negative, with a sum above 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        whole = stated.sum(axis=-1)
    return np.asarray((stated >= 0).all(axis=-1) & np.isfinite(whole) & (whole > 0))


def with_probabilities(q: QueryRatings, stated: Floats) -> QueryRatings:
    """Return the ratings with their probabilities, see `QueryRatings.at_least`.

    Args:
        stated: the probabilities of the ratings 0..5, shape (n_docs, n_items, 6), on any scale; a rating is
            certain where they are not `usable`, as where they are NaN. Where there is no rating they are not
            looked at.
    """
    usable_cells = (usable(stated) & (q.ratings >= 0))[..., None]
    stated = np.where(usable_cells, stated, 0)
    better = np.flip(np.cumsum(np.flip(stated, -1), axis=-1), -1)[..., 1:]
    shares = np.divide(better, stated.sum(axis=-1, keepdims=True), out=certain(q.ratings), where=usable_cells)
    return replace(q, at_least=np.clip(shares, 0.0, 1.0))


def certain(ratings: NDArray[np.integer]) -> Floats:
    """1.0 if the rating is at least 1, 2, .. 5, else 0.0; shape (..., 5)."""
    reached: Floats = (ratings[..., None] > np.arange(MAX_RATING)).astype(np.float64)
    return reached


def best_at_least(at_least: Floats, m: int = 1) -> Floats:
    """Return the probability that at least m of independent items reach each level (Poisson binomial).

    `at_least` has the probability of each item and level, shape (n_docs, n_items, levels). With m = 1 it is
    1 - prod_i (1 - p_i).
    """
    # fewer[j]: the probability that exactly j of the items so far, and j < m, reach the level.
    fewer = np.zeros((m, len(at_least), at_least.shape[2]))
    fewer[0] = 1.0
    for item in range(at_least.shape[1]):
        p = at_least[:, item]
        fewer[1:] = fewer[1:] * (1 - p) + fewer[:-1] * p
        fewer[0] *= 1 - p
    enough: Floats = np.clip(1 - fewer.sum(axis=0), 0, 1)
    return enough


def gains(q: QueryRatings, min_answers: int = 1) -> Floats:
    """Return the expected label of each passage, where the label is its m-th best rating, m = min_answers.

        gain(d) = E[label(d)] = sum over r = 1..5 of P(at least m items rate d with r or better)

    Items are taken as independent, so that with m = 1 the probability is 1 - prod_i P(rating_i < r). Where
    all ratings are certain it is the label of `trecexam.scores.labels.labels` with "max"; so is what a person
    gave the passage as a whole. It is NaN where a passage has no rating.
    """
    if min_answers < 1:
        raise ValueError(f"min_answers = {min_answers}: at least 1 needed")
    at_least = certain(q.ratings) if q.at_least is None else q.at_least
    expected: Floats = best_at_least(at_least, min_answers).sum(axis=1)
    for row, doc_id in enumerate(q.doc_ids) if q.human else ():
        expected[row] = q.human.get(doc_id, expected[row])
    expected[~q.rated] = np.nan
    return expected
