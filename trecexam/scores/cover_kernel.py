"""Rubric-Cover of one ranking: numpy in, numbers out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class CoverValues(NamedTuple):
    """Cover and nCover of one ranking, both 0..1."""

    cover: float
    ncover: float


def cover_values(
    ratings: NDArray[np.integer], ranking: NDArray[np.intp], rel: int, cutoff: int | None = None
) -> CoverValues:
    """The share of a query's items that the first passages of a ranking reach.

    With R(d) the items on which passage d is rated `rel` or better,

        Cover(P, k, t) = |union of R(d) over the first k passages d of P| / |items of the query|

    and nCover divides by the items in the union of R(d) over all pooled passages instead; 0/0 is 0.
    Cover is the EXAM Cover of Sander & Dietz, "EXAM: How to Evaluate Retrieve-and-Generate Systems for
    Users Who Do Not (Yet) Know What They Want", DESIRES 2021, as Rubric-Cover in Farzi & Dietz, "Pencils
    Down! Automatic Rubric-based Evaluation of Retrieve/Generate Systems", ICTIR 2024.

    Args:
        ratings: shape (pooled passages, items of the query); a missing rating is any value below `rel`.
        ranking: for each rank, best first, the passage's row in `ratings`, or -1 for one outside the pool.
        rel: from this rating on, a passage reaches an item.
        cutoff: how many ranks count, at least 1; None for all.
    """
    reaches = ratings >= rel
    rows = ranking[:cutoff]
    covered = int(np.count_nonzero(reaches[rows[rows >= 0]].any(axis=0)))
    if covered == 0:
        return CoverValues(0.0, 0.0)
    reachable = int(np.count_nonzero(reaches.any(axis=0)))
    return CoverValues(covered / ratings.shape[1], covered / reachable)


def trec_order(scores: Mapping[str, float]) -> list[str]:
    """The doc_ids of one query's results as trec_eval 9 orders them.

    By score, highest first, where scores are compared as 32-bit floats; ties by doc_id, highest first.
    """
    doc_ids = sorted(scores, reverse=True)
    with np.errstate(over="ignore"):
        values = np.array([scores[doc_id] for doc_id in doc_ids], np.float64).astype(np.float32)
    return [doc_ids[row] for row in np.argsort(-values, kind="stable").tolist()]
