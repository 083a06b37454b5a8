"""nDCG and nDCG@k: discounted gain divided by that of the ideal ranking."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from ir_measures import Measure
from numpy.typing import NDArray

from trecexam.scores.columns.judged import UNJUDGED, Judged
from trecexam.scores.columns.measures.base import (
    ColumnMeasure,
    Computation,
    Values,
    considered,
    cutoff_of,
    discounts,
    last_sum,
    ratio,
)
from trecexam.scores.columns.ranked import NO_RANK, Hits


def dcg(gains: NDArray[np.integer | np.floating], ranks: NDArray[np.int32]) -> Values:
    """The sum of gain / log2(rank + 2) over the ranks from 0, in the order of the ranks.

    Jarvelin & Kekalainen, "Cumulated gain-based evaluation of IR techniques", TOIS 20(4), 2002, in the form
    of trec_eval's `te_calc_ndcg` and `te_calc_ndcg_cut` (m_ndcg.c, m_ndcg_cut.c): gains are labels, and
    those below 0 are 0.

    Args:
        gains, ranks: of shape (queries, hits); `NO_RANK` beyond a query's hits.

    Returns:
        float64 of shape (queries,).
    """
    gains = np.where(ranks != NO_RANK, np.maximum(gains, 0), 0)
    filled_ranks = np.where(ranks != NO_RANK, ranks, 0)
    return last_sum(gains / discounts(int(filled_ranks.max(initial=0)) + 1)[filled_ranks])


def ideal_dcg(judged: Judged, cutoff: int | None, gains: Mapping[int, int] | None = None) -> Values:
    """The DCG of the passages by falling gain, at the cutoff; shape (queries,).

    Args:
        gains: of labels; None for the judgments' own gains, or labels where they have none.
    """
    all_gains = judged.labels if judged.gains is None else judged.gains
    if gains:
        all_gains = gains_of(judged.labels, gains)
    useful = np.flatnonzero(all_gains > 0)
    order = useful[np.lexsort((-all_gains[useful], judged.query_of_row[useful]))]
    query = judged.query_of_row[order]
    counts = np.bincount(query, minlength=len(judged.query_ids))
    rank = np.arange(len(order)) - (np.cumsum(counts) - counts)[query]
    shape = len(counts), int(counts.max(initial=0))
    sorted_gains, ranks = np.zeros(shape, all_gains.dtype), np.full(shape, NO_RANK, np.int32)
    sorted_gains[query, rank], ranks[query, rank] = all_gains[order], rank
    return dcg(sorted_gains[:, :cutoff], ranks[:, :cutoff])


def gains_of(labels: NDArray[np.int32], gains: Mapping[int, int]) -> NDArray[np.int32]:
    """The gain of each label: itself, or the mapped value; `UNJUDGED` is kept."""
    mapped = labels.copy()
    for label, gain in gains.items():
        mapped[(labels == label) & (labels != UNJUDGED)] = gain
    return mapped


def ndcg(gains: NDArray[np.integer | np.floating], ranks: NDArray[np.int32], ideal: Values) -> Values:
    """DCG at the hits / DCG of the ideal ranking, 0..1; 0 where no passage has a gain.

    Args:
        gains, ranks: of the hits at the ranks that count.
        ideal: of `ideal_dcg`, with the same cutoff and gains.

    Returns:
        float64 of shape (queries,).
    """
    return ratio(dcg(gains, ranks), ideal)


def computation(measure: Measure, judged: Judged) -> Computation:
    """Computes nDCG(gains, judged_only)@k."""
    gains = measure.params.get("gains")
    ideal = ideal_dcg(judged, cutoff_of(measure), gains)
    # Row -1 has none.
    label_gains = None if judged.gains is None or gains else np.append(judged.gains, 0.0)

    def values(hits: Hits) -> Values:
        if gains:
            # Before judged_only, to which a passage whose gain is negative is not judged.
            hits = hits.relabelled(gains_of(hits.labels, gains))
        hits = considered(measure, hits)
        return ndcg(hits.labels if label_gains is None else label_gains[hits.rows], hits.ranks, ideal)

    return values


def _takes(measure: Measure) -> bool:
    """Whether gains are whole numbers, and discounts trec_eval's."""
    gains = measure.params.get("gains") or {}
    whole = all(isinstance(number, int) for pair in gains.items() for number in pair)
    return bool(whole and measure["dcg"] == "log2")


MEASURES = (
    ColumnMeasure(
        "nDCG",
        frozenset(("cutoff", "dcg", "gains", "judged_only")),
        computation,
        "`cutoff`, `gains` (whole numbers), `judged_only`; `dcg='log2'`",
        depends_on_pool=True,
        takes=_takes,
    ),
)
