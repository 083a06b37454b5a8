"""How probable a passage's automatic label is, from the grader's distributions over the ratings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.labels import LabelRule, labels
from trecexam.scores.ratings import MAX_RATING, QueryRatings

Floats = NDArray[np.float64]


def label_confidences(
    q: QueryRatings,
    distributions: Floats,
    rule: LabelRule = "max",
    min_rating: int = 4,
    min_answers: int = 1,
) -> dict[str, float]:
    """The probability of each passage's label; arguments, and what is raised, as of `label_probabilities`.

    Returns:
        doc_id -> probability, 0..1.
    """
    passage_labels = labels(q, rule, min_rating, min_answers)
    chances = label_probabilities(q, distributions, rule, min_rating, min_answers)
    return {doc_id: float(of_doc[passage_labels[doc_id]]) for doc_id, of_doc in chances.items()}


def label_probabilities(
    q: QueryRatings,
    distributions: Floats,
    rule: LabelRule = "max",
    min_rating: int = 4,
    min_answers: int = 1,
) -> dict[str, Floats]:
    """How probable each label of each passage is, were each cell's rating drawn from its distribution.

    Cells are taken as independent. With F_i(r) the probability that item i is rated r or less:

        "max", min_answers 1:  P(label = r) = prod_i F_i(r) - prod_i F_i(r - 1)

    In general N(r), the number of items rated r or better, is Poisson-binomial with the probabilities
    1 - F_i(r - 1), and with m = min_answers and t = min_rating

        "max":    P(label = r) = P(N(r) >= m) - P(N(r + 1) >= m),  where P(N(0) >= m) counts as 1
        "count":  P(label = c) = P(N(t) = c) for c >= m,  P(label = 0) = P(N(t) < m)

    A cell without a rating reaches nothing, as in the label itself. Items that ask alike are not independent:
    use the figures to order the lines, not as a rate of errors.

    Args:
        distributions: float64 of shape (n_docs, n_items, 6), probabilities of the ratings 0..5; NaN where
            the grader gave none.
        rule, min_rating, min_answers: as in `trecexam.scores.labels.labels`.

    Returns:
        doc_id -> probabilities, 0..1, of the labels from 0 on; only passages with a distribution for each of
        their ratings, and that nobody rated as a whole.

    Raises:
        ValueError: as `labels`; or a shape that does not fit.
    """
    passage_labels = labels(q, rule, min_rating, min_answers)
    shape = (*q.ratings.shape, MAX_RATING + 1)
    if distributions.shape != shape:
        raise ValueError(f"distributions of shape {distributions.shape} and not {shape}")
    rated = q.ratings >= 0
    whole = distributions.sum(axis=2)
    has_probabilities = (~rated | (np.isfinite(whole) & (whole > 0))).all(axis=1) & rated.any(axis=1)
    rows = [
        row
        for row, doc_id in enumerate(q.doc_ids)
        if has_probabilities[row] and doc_id in passage_labels and doc_id not in q.human
    ]
    if not rows:
        return {}
    shares = np.where(rated[rows, :, None], distributions[rows], 0.0)
    totals = shares.sum(axis=2, keepdims=True)
    shares = np.divide(shares, totals, out=np.zeros_like(shares), where=totals > 0)
    # better[:, :, r] is the probability of r or better; nothing is better than the best.
    better = np.concatenate(
        [np.flip(np.cumsum(np.flip(shares, 2), axis=2), 2), np.zeros((*shares.shape[:2], 1))], axis=2
    )
    if rule == "count":
        values = _count_probabilities(better[:, :, min_rating])
        values[:, 0] = values[:, :min_answers].sum(axis=1)
        values[:, 1:min_answers] = 0
    else:
        at_least = np.stack(
            [
                np.ones(len(rows)),
                *(
                    _count_probabilities(better[:, :, r])[:, min_answers:].sum(axis=1)
                    for r in range(1, MAX_RATING + 2)
                ),
            ],
            axis=1,
        )
        values = at_least[:, :-1] - at_least[:, 1:]
    return {q.doc_ids[row]: of_doc for row, of_doc in zip(rows, values.clip(0, 1), strict=True)}


def _count_probabilities(chances: Floats) -> Floats:
    """The Poisson-binomial distribution: of n independent events with these chances, how many happen.

    Args:
        chances: shape (n_docs, n).

    Returns:
        Shape (n_docs, n + 1).
    """
    n_docs, n = chances.shape
    distribution = np.zeros((n_docs, n + 1))
    distribution[:, 0] = 1
    for item in range(n):
        chance = chances[:, item, None]
        distribution[:, 1:] = distribution[:, 1:] * (1 - chance) + distribution[:, :-1] * chance
        distribution[:, 0] *= 1 - chance[:, 0]
    return distribution
