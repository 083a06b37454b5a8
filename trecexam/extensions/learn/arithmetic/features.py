"""What is known of a passage beside its text: a row of numbers, each also standardised within its query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]

#: Passages nearest to the query whose mean is the centroid.
NEAREST = 20


def max_sim(query_tokens: Vectors, passage_tokens: Vectors) -> float:
    """Late interaction: the mean over a query's tokens of the greatest cosine with any token of the passage.

    Khattab & Zaharia, "ColBERT", SIGIR 2020, equation 3, divided by the number of query tokens.

    Args:
        query_tokens, passage_tokens: unit vectors, shape (tokens, dimension).
    """
    if not len(query_tokens) or not len(passage_tokens):
        return 0.0
    return float((query_tokens @ passage_tokens.T).max(axis=1).mean())


def query_features(
    query: Vectors,
    items: Vectors,
    passages: Vectors,
    max_sims: Sequence[float],
    lengths: Sequence[int],
    ratings: Floats | None = None,
) -> Floats:
    """The features of a query's passages.

    Args:
        query: a unit vector.
        items: unit vectors, shape (n_items, dimension); may be empty.
        passages: unit vectors, shape (n, dimension).
        max_sims: of each passage with the query.
        lengths: characters of each passage.
        ratings: a grader's, or expected ones, shape (n, n_items), -1 where there is none; None leaves their
            features out.

    Returns:
        Shape (n, 12), or (n, 16) with ratings: first the cosine with the query, the greatest and mean cosine
        with the items, `max_sim`, the cosine with the centroid of the 20 passages nearest to the query, the
        logarithm of the length, and the greatest and mean rating; then the same less their means over the
        passages, divided by their standard deviations (0 where all are the same). Without an item, or a
        rating of a passage, what is said of these is 0.
    """
    cosines = passages @ query
    by_item = passages @ items.T if len(items) else np.zeros((len(passages), 1), np.float32)
    nearest = np.argsort(-cosines, kind="stable")[:NEAREST]
    centroid = passages[nearest].sum(axis=0)
    norm = float(np.linalg.norm(centroid))
    columns = [
        cosines,
        by_item.max(axis=1),
        by_item.mean(axis=1),
        np.asarray(max_sims),
        passages @ (centroid / norm if norm else centroid),
        np.log1p(np.asarray(lengths)),
    ]
    if ratings is not None:
        rated = np.maximum(ratings, 0)
        n_rated = np.maximum((ratings >= 0).sum(axis=1), 1)
        columns += [rated.max(axis=1, initial=0), rated.sum(axis=1) / n_rated]
    raw = np.column_stack(columns).astype(np.float64)
    return np.hstack([raw, standardised(raw)])


def standardised(columns: Floats) -> Floats:
    """Each column less its mean, divided by its standard deviation; 0 where all its values are the same."""
    if not len(columns):
        return columns
    spread = columns.std(axis=0)
    # Rounding leaves a spread where all values are the same.
    same = spread <= 1e-9 * np.maximum(np.abs(columns).max(axis=0), 1)
    return np.asarray(np.where(same, 0.0, (columns - columns.mean(axis=0)) / np.where(same, 1.0, spread)))
