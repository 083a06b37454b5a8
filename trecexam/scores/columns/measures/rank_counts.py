"""Measures that count relevant or judged passages: P, Success, RR, R, Rprec, AP, SetP, Judged, NumRet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from ir_measures import Measure
from numpy.typing import NDArray

from converters.records import NOT_JUDGED
from trecexam.scores.columns.judged import UNJUDGED, Judged
from trecexam.scores.columns.measures.base import (
    ColumnMeasure,
    Computation,
    Values,
    considered,
    last_sum,
    n_relevant,
    n_relevant_at,
    ratio,
)
from trecexam.scores.columns.ranked import Hits


def precision(hits: Hits, rel: int, cutoff: int) -> Values:
    """|relevant in the first `cutoff` ranks| / cutoff, 0..1, also where fewer are retrieved.

    As trec_eval's `te_calc_P` (m_P.c); van Rijsbergen, "Information Retrieval", 1979.

    Args:
        hits: at the first `cutoff` ranks.
        rel: the label from which a passage is relevant, at least 1.

    Returns:
        float64 of shape (queries,).
    """
    values: Values = n_relevant_at(hits, rel) / np.float64(cutoff)
    return values


def success(hits: Hits, rel: int) -> Values:
    """1 where a passage at the hits is relevant, else 0.

    As trec_eval's `te_calc_success` (m_success.c).

    Args:
        hits: at the ranks that count.
        rel: the label from which a passage is relevant, at least 1.

    Returns:
        float64 of shape (queries,).
    """
    return np.asarray((hits.labels >= rel).any(axis=1), np.float64)


def reciprocal_rank(hits: Hits, rel: int) -> Values:
    """1 / rank of the first relevant passage, counted from 1; 0 if no hit is relevant.

    As trec_eval's `te_calc_recip_rank` (m_recip_rank.c), and with the hits at the first ranks as MS MARCO's
    `compute_metrics`, which ir_measures takes for RR@k. Kantor & Voorhees, "The TREC-5 Confusion Track",
    Information Retrieval 2, 2000.

    Args:
        hits: at the ranks that count.
        rel: the label from which a passage is relevant, at least 1.

    Returns:
        float64 of shape (queries,), 0..1.
    """
    if not hits.labels.shape[1]:
        return np.zeros(len(hits.labels), np.float64)
    is_relevant = hits.labels >= rel
    first = is_relevant.argmax(axis=1)
    rows = np.arange(len(first))
    values: Values = np.where(is_relevant[rows, first], 1.0 / (hits.ranks[rows, first] + 1.0), 0.0)
    return values


def recall(hits: Hits, rel: int, relevant: NDArray[np.int64]) -> Values:
    """|relevant at the hits| / |relevant|, 0..1; 0 where nothing is relevant.

    As trec_eval's `te_calc_recall` (m_recall.c) and, with all hits, `te_calc_set_recall` (m_set_recall.c).

    Args:
        hits: at the ranks that count.
        rel: the label from which a passage is relevant, at least 1.
        relevant: of each query, how many passages are relevant.

    Returns:
        float64 of shape (queries,).
    """
    return ratio(n_relevant_at(hits, rel), relevant)


def r_precision(hits: Hits, rel: int, relevant: NDArray[np.int64]) -> Values:
    """|relevant in the first R ranks| / R, 0..1; 0 where nothing is relevant.

    As trec_eval's `te_calc_Rprec` (m_Rprec.c). Buckley & Voorhees, "Retrieval System Evaluation", in "TREC:
    Experiment and Evaluation in Information Retrieval", MIT Press 2005.

    Args:
        hits: all of the run's.
        rel: the label from which a passage is relevant, at least 1.
        relevant: of each query R.

    Returns:
        float64 of shape (queries,).
    """
    counted = (hits.labels >= rel) & (hits.ranks < relevant[:, None])
    return ratio(np.count_nonzero(counted, axis=1), relevant)


def average_precision(hits: Hits, rel: int, relevant: NDArray[np.int64]) -> Values:
    """The sum of the precision at each rank with a relevant passage / |relevant|, 0..1.

    As trec_eval's `te_calc_map` (m_map.c) and, with the hits at the first ranks, `te_calc_map_cut`
    (m_map_cut.c): 0 where nothing is relevant. Buckley & Voorhees, "Retrieval System Evaluation", in "TREC:
    Experiment and Evaluation in Information Retrieval", MIT Press 2005.

    Args:
        hits: at the ranks that count.
        rel: the label from which a passage is relevant, at least 1.
        relevant: of each query, how many passages are relevant.

    Returns:
        float64 of shape (queries,).
    """
    is_relevant = hits.labels >= rel
    so_far = np.cumsum(is_relevant, axis=1)
    precisions = np.where(is_relevant, so_far / (hits.ranks + 1.0), 0.0)
    return ratio(last_sum(precisions), relevant)


def set_precision(hits: Hits, rel: int, at_most: NDArray[np.int64] | None = None) -> Values:
    """|relevant retrieved| / |retrieved|, 0..1; 0 where nothing is retrieved.

    As trec_eval's `te_calc_set_P` (m_set_P.c), and with `at_most` as `te_calc_set_relative_P`
    (m_set_rel_P.c).

    Args:
        hits: all of the run's.
        rel: the label from which a passage is relevant, at least 1.
        at_most: of each query, how many passages are relevant; where fewer than are retrieved, it divides.

    Returns:
        float64 of shape (queries,).
    """
    below = hits.n_retrieved if at_most is None else np.minimum(hits.n_retrieved, at_most)
    return ratio(n_relevant_at(hits, rel), below)


def judged_share(hits: Hits, retrieved: NDArray[np.int64]) -> Values:
    """Return |judged at the hits| / |retrieved|, 0..1; 0 where nothing is retrieved.

    As ir_measures' judged provider, but that `NOT_JUDGED` is no judgment. Where fewer than the cutoff are
    retrieved, their number divides.

    Args:
        hits: at the ranks that count.
        retrieved: of each query, how many entries there are at these ranks.

    Returns:
        float64 of shape (queries,).
    """
    return ratio(np.count_nonzero((hits.labels != UNJUDGED) & (hits.labels != NOT_JUDGED), axis=1), retrieved)


def of_precision(measure: Measure, judged: Judged) -> Computation:
    """Computes P(rel, judged_only)@k."""
    return lambda hits: precision(considered(measure, hits), measure["rel"], measure["cutoff"])


def of_hits(values: Callable[[Hits, int], Values]) -> Callable[[Measure, Judged], Computation]:
    """Computes a measure of the labels at the hits: Success or RR(rel, judged_only)@k."""
    return lambda measure, judged: lambda hits: values(considered(measure, hits), measure["rel"])


def of_relevant(
    values: Callable[[Hits, int, NDArray[np.int64]], Values],
) -> Callable[[Measure, Judged], Computation]:
    """Computes a measure that needs the number of relevant passages: R or AP(rel, judged_only)@k, Rprec."""

    def computation(measure: Measure, judged: Judged) -> Computation:
        rel = measure["rel"]
        relevant = n_relevant(judged, rel)
        return lambda hits: values(considered(measure, hits), rel, relevant)

    return computation


def of_set_precision(measure: Measure, judged: Judged) -> Computation:
    """Computes SetP(rel, relative, judged_only)."""
    rel = measure["rel"]
    at_most = n_relevant(judged, rel) if measure["relative"] else None
    return lambda hits: set_precision(considered(measure, hits), rel, at_most)


def of_judged_share(measure: Measure, judged: Judged) -> Computation:
    """Computes Judged@k."""
    cutoff = measure.params.get("cutoff")

    def values(hits: Hits) -> Values:
        retrieved = hits.n_retrieved if cutoff is None else np.minimum(hits.n_retrieved, cutoff)
        return judged_share(considered(measure, hits), retrieved)

    return values


def of_counts(measure: Measure, judged: Judged) -> Computation:
    """Computes NumRet, NumRet(rel) or NumRel; 0 each where the run skips the query, as ir_measures has it.

    NumRet(rel) is trec_eval's `te_calc_num_rel_ret` (m_num_rel_ret.c).
    """
    if measure.NAME == "NumRel":
        relevant = n_relevant(judged, measure["rel"]).astype(np.float64)
        return lambda hits: np.where(hits.n_retrieved > 0, relevant, 0.0)
    if "rel" in measure.params:
        return lambda hits: n_relevant_at(hits, measure["rel"]).astype(np.float64)
    return lambda hits: hits.n_retrieved.astype(np.float64)


_COUNTED = frozenset(("rel",))
_WHOLE = frozenset(("rel", "judged_only"))
_CUT = frozenset(("cutoff", "rel", "judged_only"))
_CUT_WORDS = "`cutoff`, `rel` from 1, `judged_only`"

MEASURES = (
    ColumnMeasure("P", _CUT, of_precision, _CUT_WORDS),
    ColumnMeasure("Success", _CUT, of_hits(success), _CUT_WORDS),
    ColumnMeasure(
        "RR",
        _CUT,
        of_hits(reciprocal_rank),
        "`rel` from 1, `cutoff` or `judged_only`",
        takes=lambda measure: not (measure.params.get("judged_only") and "cutoff" in measure.params),
    ),
    ColumnMeasure("R", _CUT, of_relevant(recall), _CUT_WORDS, depends_on_pool=True),
    ColumnMeasure("SetR", _CUT, of_relevant(recall), "`rel` from 1", depends_on_pool=True),
    ColumnMeasure(
        "Rprec", _WHOLE, of_relevant(r_precision), "`rel` from 1, `judged_only`", depends_on_pool=True
    ),
    ColumnMeasure("AP", _CUT, of_relevant(average_precision), _CUT_WORDS, depends_on_pool=True),
    ColumnMeasure(
        "SetP",
        _WHOLE | {"relative"},
        of_set_precision,
        "`rel` from 1, `relative`, `judged_only`",
        depends_on_pool="relative",
    ),
    ColumnMeasure("Judged", frozenset(("cutoff",)), of_judged_share, "`cutoff`"),
    ColumnMeasure(
        "NumRel",
        _COUNTED,
        of_counts,
        "`rel=1`",
        depends_on_pool=True,
        takes=lambda measure: bool(measure["rel"] == 1),
        depth=lambda measure: 1,
    ),
    ColumnMeasure(
        "NumRet",
        _COUNTED,
        of_counts,
        "none; with `rel` from 1 it is NumRelRet",
        depth=lambda measure: None if "rel" in measure.params else 1,
    ),
)
