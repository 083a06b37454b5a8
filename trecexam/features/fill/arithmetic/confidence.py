"""How probable a passage's automatic label is, from the grader's distributions over the ratings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.expected import best_at_least, with_probabilities
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
    """Return how probable each passage's label is, were each cell's rating drawn from its distribution.

    Cells are taken as independent. With N(r), the number of items rated r or better (Poisson-binomial),
    m = min_answers and t = min_rating:

        "max":    P(label = r) = P(N(r) >= m) - P(N(r + 1) >= m),  where P(N(0) >= m) counts as 1
        "count":  P(label = c) = P(N(t) = c) for c >= m,  P(label = 0) = P(N(t) < m)

    A cell without a rating reaches nothing, as in the label itself. Items that ask alike are not independent:
    use the figures to order the lines, not as a rate of errors.

    Args:
        distributions: float64 of shape (n_docs, n_items, 6), probabilities of the ratings 0..5; NaN where
            the grader gave none.
        rule, min_rating, min_answers: as in `trecexam.scores.labels.labels`.

    Returns:
        doc_id -> probability, 0..1; only passages with a distribution for each of their ratings, and that
        nobody rated as a whole.

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
    reached = with_probabilities(q, distributions).at_least
    assert reached is not None
    # Column n: the probability of a label of n or more.
    best = max(passage_labels.values(), default=0) if rule == "count" else MAX_RATING
    at_least = np.ones((len(q.doc_ids), best + 2))
    if rule == "count":
        for n in range(1, best + 2):
            at_least[:, n] = best_at_least(reached[:, :, [min_rating - 1]], max(n, min_answers))[:, 0]
    else:
        at_least[:, 1:-1], at_least[:, -1] = best_at_least(reached, min_answers), 0
    chances = (at_least[:, :-1] - at_least[:, 1:]).clip(0, 1)
    return {
        doc_id: float(of_doc[passage_labels[doc_id]])
        for doc_id, of_doc, known in zip(q.doc_ids, chances, has_probabilities.tolist(), strict=True)
        if known and doc_id in passage_labels and doc_id not in q.human
    }
