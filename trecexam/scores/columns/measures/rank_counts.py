"""Measures that count relevant or judged passages: P, Success, RR, R, Rprec, AP, SetP, Judged, NumRet.

Each is a function of the measure, the hits at the ranks that count, and each query's number of passages whose
label is the measure's `rel` or better; it gives float64 of shape (queries,).
"""

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
    ratio,
)
from trecexam.scores.columns.ranked import Hits

Counts = NDArray[np.int64]


def precision(measure: Measure, hits: Hits, relevant: Counts) -> Values:
    """Return |relevant in the first `cutoff` ranks| / cutoff, 0..1, also where fewer are retrieved.

    As trec_eval's `te_calc_P` (m_P.c); van Rijsbergen, "Information Retrieval", 1979.
    """
    values: Values = _n_found(measure, hits) / np.float64(measure["cutoff"])
    return values


def success(measure: Measure, hits: Hits, relevant: Counts) -> Values:
    """Return 1 where a passage at the hits is relevant, else 0.

    As trec_eval's `te_calc_success` (m_success.c).
    """
    return (_n_found(measure, hits) > 0).astype(np.float64)


def reciprocal_rank(measure: Measure, hits: Hits, relevant: Counts) -> Values:
    """Return 1 / rank of the first relevant passage, counted from 1; 0 if no hit is relevant.

    As trec_eval's `te_calc_recip_rank` (m_recip_rank.c), and with the hits at the first ranks as MS MARCO's
    `compute_metrics`, which ir_measures takes for RR@k. Kantor & Voorhees, "The TREC-5 Confusion Track",
    Information Retrieval 2, 2000.
    """
    is_relevant = hits.labels >= measure["rel"]
    reciprocals: Values = np.where(is_relevant, 1.0 / (hits.ranks + 1.0), 0.0)
    return np.asarray(reciprocals.max(axis=1, initial=0.0), np.float64)


def recall(measure: Measure, hits: Hits, relevant: Counts) -> Values:
    """Return |relevant at the hits| / |relevant|, 0..1; 0 where nothing is relevant.

    As trec_eval's `te_calc_recall` (m_recall.c) and, with all hits, `te_calc_set_recall` (m_set_recall.c).
    """
    return ratio(_n_found(measure, hits), relevant)


def r_precision(measure: Measure, hits: Hits, relevant: Counts) -> Values:
    """Return |relevant in the first R ranks| / R, with R = |relevant|, 0..1; 0 where nothing is relevant.

    As trec_eval's `te_calc_Rprec` (m_Rprec.c). Buckley & Voorhees, "Retrieval System Evaluation", in "TREC:
    Experiment and Evaluation in Information Retrieval", MIT Press 2005.
    """
    counted = (hits.labels >= measure["rel"]) & (hits.ranks < relevant[:, None])
    return ratio(np.count_nonzero(counted, axis=1), relevant)


def average_precision(measure: Measure, hits: Hits, relevant: Counts) -> Values:
    """Return the sum of the precision at each rank with a relevant passage / |relevant|, 0..1.

    As trec_eval's `te_calc_map` (m_map.c) and, with the hits at the first ranks, `te_calc_map_cut`
    (m_map_cut.c): 0 where nothing is relevant. Buckley & Voorhees, as for Rprec.
    """
    is_relevant = hits.labels >= measure["rel"]
    so_far = np.cumsum(is_relevant, axis=1)
    return ratio(last_sum(np.where(is_relevant, so_far / (hits.ranks + 1.0), 0.0)), relevant)


def set_precision(measure: Measure, hits: Hits, relevant: Counts) -> Values:
    """Return |relevant retrieved| / |retrieved|, 0..1; 0 where nothing is retrieved.

    As trec_eval's `te_calc_set_P` (m_set_P.c). With `relative`, |relevant| divides where it is less, as in
    `te_calc_set_relative_P` (m_set_rel_P.c).
    """
    retrieved = hits.n_retrieved
    return ratio(
        _n_found(measure, hits), np.minimum(retrieved, relevant) if measure["relative"] else retrieved
    )


def judged_share(measure: Measure, hits: Hits, relevant: Counts) -> Values:
    """Return |judged at the hits| / |retrieved at their ranks|, 0..1; 0 where nothing is retrieved.

    As ir_measures' judged provider, but that `NOT_JUDGED` is no judgment. Where fewer than the cutoff are
    retrieved, their number divides.
    """
    retrieved = np.minimum(hits.n_retrieved, measure.params.get("cutoff", np.inf))
    is_judged = (hits.labels != UNJUDGED) & (hits.labels != NOT_JUDGED)
    return ratio(np.count_nonzero(is_judged, axis=1), retrieved)


def relevant_count(measure: Measure, hits: Hits, relevant: Counts) -> Values:
    """Return |relevant|; 0 where the run skips the query, as ir_measures has it."""
    return np.where(hits.n_retrieved > 0, relevant, 0).astype(np.float64)


def retrieved_count(measure: Measure, hits: Hits, relevant: Counts) -> Values:
    """Return |retrieved|, and with `rel` |relevant retrieved| as trec_eval's `te_calc_num_rel_ret`."""
    counts = _n_found(measure, hits) if "rel" in measure.params else hits.n_retrieved
    return counts.astype(np.float64)


def _n_found(measure: Measure, hits: Hits) -> Counts:
    return np.asarray(np.count_nonzero(hits.labels >= measure["rel"], axis=1), np.int64)


def _counting(
    values: Callable[[Measure, Hits, Counts], Values],
) -> Callable[[Measure, Judged], Computation]:
    def computation(measure: Measure, judged: Judged) -> Computation:
        # Judged has no `rel`.
        relevant = n_relevant(judged, measure.params.get("rel", 1))
        return lambda hits: values(measure, considered(measure, hits), relevant)

    return computation


_COUNTED = frozenset(("rel",))
_WHOLE = frozenset(("rel", "judged_only"))
_CUT = frozenset(("cutoff", "rel", "judged_only"))
_CUT_WORDS = "`cutoff`, `rel` from 1, `judged_only`"

MEASURES = (
    ColumnMeasure("P", _CUT, _counting(precision), _CUT_WORDS),
    ColumnMeasure("Success", _CUT, _counting(success), _CUT_WORDS),
    ColumnMeasure(
        "RR",
        _CUT,
        _counting(reciprocal_rank),
        "`rel` from 1, `cutoff` or `judged_only`",
        takes=lambda measure: not (measure.params.get("judged_only") and "cutoff" in measure.params),
    ),
    ColumnMeasure("R", _CUT, _counting(recall), _CUT_WORDS, depends_on_pool=True),
    ColumnMeasure("SetR", _CUT, _counting(recall), "`rel` from 1", depends_on_pool=True),
    ColumnMeasure(
        "Rprec", _WHOLE, _counting(r_precision), "`rel` from 1, `judged_only`", depends_on_pool=True
    ),
    ColumnMeasure("AP", _CUT, _counting(average_precision), _CUT_WORDS, depends_on_pool=True),
    ColumnMeasure(
        "SetP",
        _WHOLE | {"relative"},
        _counting(set_precision),
        "`rel` from 1, `relative`, `judged_only`",
        depends_on_pool="relative",
    ),
    ColumnMeasure("Judged", frozenset(("cutoff",)), _counting(judged_share), "`cutoff`"),
    ColumnMeasure(
        "NumRel",
        _COUNTED,
        _counting(relevant_count),
        "`rel=1`",
        depends_on_pool=True,
        takes=lambda measure: bool(measure["rel"] == 1),
        depth=lambda measure: 1,
    ),
    ColumnMeasure(
        "NumRet",
        _COUNTED,
        _counting(retrieved_count),
        "none; with `rel` from 1 it is NumRelRet",
        depth=lambda measure: None if "rel" in measure.params else 1,
    ),
)
