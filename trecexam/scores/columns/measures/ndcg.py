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
    discounts,
    last_sum,
    ratio,
)
from trecexam.scores.columns.ranked import NO_RANK, Hits

#: Powers of two up to this exponent can be added up as 64-bit floats.
_HIGHEST_EXPONENT = 1000


def dcg(gains: NDArray[np.integer | np.floating], ranks: NDArray[np.int32]) -> Values:
    """Return the sum of gain / log2(rank + 2) over the ranks from 0, in the order of the ranks.

    Jarvelin & Kekalainen, "Cumulated gain-based evaluation of IR techniques", TOIS 20(4), 2002, in the form
    of trec_eval's `te_calc_ndcg` and `te_calc_ndcg_cut` (m_ndcg.c, m_ndcg_cut.c): gains are labels, and
    those below 0 are 0. Ranks are `NO_RANK` beyond a query's hits.
    """
    gains = np.where(ranks != NO_RANK, np.maximum(gains, 0), 0)
    filled_ranks = np.where(ranks != NO_RANK, ranks, 0)
    return last_sum(gains / discounts(int(filled_ranks.max(initial=0)) + 1)[filled_ranks])


def exponential(gains: NDArray[np.integer | np.floating], scale: int) -> Values:
    """Return (2^gain - 1) / 2^scale, the gain of `dcg='exp-log2'`; 0 for gains below 0.

    The scale changes no nDCG, and keeps huge labels from overflowing.

    Burges et al., "Learning to Rank using Gradient Descent", ICML 2005; `gdeval.pl` of TREC's Web Track.
    """
    powers = np.exp2(np.maximum(gains, 0).astype(np.float64) - scale)
    return np.asarray(powers - np.exp2(-float(scale)))


def ideal_dcg(
    judged: Judged, cutoff: int | None, gains: Mapping[int, int] | None = None, scale: int | None = None
) -> Values:
    """Return the DCG of the passages by falling gain, at the cutoff; shape (queries,).

    Gains are of labels (`gains`), else the judgments' own or labels; with a `scale` they are `exponential`.
    """
    all_gains = judged.labels if judged.gains is None else judged.gains
    if gains:
        all_gains = gains_of(judged.labels, gains)
    if scale is not None:
        all_gains = exponential(all_gains, scale)
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


def computation(measure: Measure, judged: Judged) -> Computation:
    """Compute nDCG(dcg, gains, judged_only)@k: DCG / that of the ideal ranking, 0 where that is 0."""
    gains, scale = measure.params.get("gains"), None
    if measure["dcg"] == "exp-log2":
        scale = max(int(gains_of(judged.labels, gains or {}).max(initial=0)) - _HIGHEST_EXPONENT, 0)
    ideal = ideal_dcg(judged, measure.params.get("cutoff"), gains, scale)
    # Row -1 has none.
    label_gains = None if judged.gains is None or gains else np.append(judged.gains, 0.0)

    def values(hits: Hits) -> Values:
        if gains:
            # Before judged_only, to which a passage whose gain is negative is not judged.
            hits = Hits(gains_of(hits.labels, gains), hits.ranks, hits.rows, hits.n_retrieved)
        hits = considered(measure, hits)
        of_hits = hits.labels if label_gains is None else label_gains[hits.rows]
        return ratio(dcg(of_hits if scale is None else exponential(of_hits, scale), hits.ranks), ideal)

    return values


MEASURES = (
    ColumnMeasure(
        "nDCG",
        frozenset(("cutoff", "dcg", "gains", "judged_only")),
        computation,
        "`cutoff`, `dcg`, `gains` (whole numbers), `judged_only`",
        depends_on_pool=True,
    ),
)
