"""Measures on columns of official judgments, bit-identical to ir_measures' other providers."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from column_cases import (
    Labels,
    Scores,
    by_ir_measures,
    for_trec_eval,
    in_32_bits,
    judged_of,
    labels,
    qrels_of,
    run_of,
    scores,
    without_not_judged,
)
from hypothesis import given, settings

from trecexam.scores.columns import Evaluator, Judged, supported
from trecexam.scores.measures import measure

NAMES = (
    *(
        f"{name}@{k}"
        for name in ("P", "R", "Success", "Judged", "nDCG", "AP", "RR")
        for k in (1, 3, 10, 1000)
    ),
    *(f"{name}(rel={rel})@5" for name in ("P", "R", "Success", "AP", "RR") for rel in (2, 5)),
    *(f"{name}(judged_only=True)@4" for name in ("P", "R", "Success", "AP", "nDCG")),
    *("AP", "AP(rel=3)", "AP(judged_only=True)", "RR", "RR(rel=2)", "RR(judged_only=True,rel=2)", "nDCG"),
    *("nDCG(judged_only=True)", "nDCG(gains={1:0,2:3,3:10})@5", "Judged"),
    *("Rprec", "Rprec(rel=2)", "Rprec(judged_only=True)", "SetP", "SetP(rel=2)", "SetP(judged_only=True)"),
    *("SetP(relative=True)", "SetP(relative=True,judged_only=True,rel=2)", "SetR", "SetR(rel=3)"),
    *("NumRet", "NumRet(rel=1)", "NumRet(rel=3)", "NumRel"),
)
MEASURES = [measure(name) for name in NAMES]


@given(by_query=labels, by_run=scores)
def test_every_value_equals_ir_measures_bit_for_bit(by_query: Labels, by_run: Scores) -> None:
    judged, run = judged_of(by_query), run_of(by_run)
    values = Evaluator(MEASURES, judged).values(run)
    for column, metric in enumerate(MEASURES):
        labels_given = for_trec_eval(by_query) if metric.NAME != "Judged" else without_not_judged(by_query)
        expected = by_ir_measures(metric, qrels_of(labels_given), run, judged.query_ids)
        assert values[:, column].tolist() == expected, metric


@settings(deadline=None)
@given(by_query=labels, by_run=scores)
def test_gains_of_irrelevant_passages_equal_ir_measures(by_query: Labels, by_run: Scores) -> None:
    by_query = {query_id: {**of, "not retrieved": 3} for query_id, of in for_trec_eval(by_query).items()}
    judged, run = judged_of(by_query), run_of(by_run)
    chosen = [
        ir_measures.nDCG(gains=gains, judged_only=only) @ 7
        for gains in ({0: 1, 1: -1}, {0: -1, 1: 4, 5: 0})
        for only in (False, True)
    ]
    values = Evaluator(chosen, judged).values(run)
    for column, metric in enumerate(chosen):
        assert values[:, column].tolist() == by_ir_measures(metric, qrels_of(by_query), run, judged.query_ids)


@settings(deadline=None)
@given(by_query=labels, by_run=scores)
def test_ties_are_ordered_as_by_pytrec_eval(by_query: Labels, by_run: Scores) -> None:
    judged, by_run = judged_of(by_query), in_32_bits(by_run)
    values = Evaluator([measure("AP"), measure("nDCG@3")], judged).values(run_of(by_run))
    given_by = pytrec_eval.RelevanceEvaluator(for_trec_eval(by_query), ["map", "ndcg_cut.3"]).evaluate(by_run)
    for query_id, row in zip(judged.query_ids, values.tolist(), strict=True):
        of_query = given_by.get(query_id, {"map": 0.0, "ndcg_cut_3": 0.0})
        assert row == [of_query["map"], of_query["ndcg_cut_3"]]


def test_a_measure_alone_has_the_same_values_as_among_others() -> None:
    judged = judged_of({"q1": {f"d{n}": n % 4 for n in range(20)}, "q2": {"d1": 1}})
    run = run_of({"q1": {f"d{n}": float(n * 7 % 31) for n in range(31)}, "q3": {"d1": 1.0}})
    together = Evaluator(MEASURES, judged).values(run)
    for place, one in enumerate(MEASURES):
        np.testing.assert_array_equal(Evaluator([one], judged).values(run), together[:, [place]], str(one))


def test_sums_over_long_rankings_equal_trec_eval() -> None:
    """With thousands of terms, another order of additions would be visible."""
    rng = np.random.default_rng(3)
    by_query = {f"q{q}": {f"d{n}": int(rng.integers(0, 4)) for n in range(3000)} for q in range(4)}
    ranks = {q: rng.permutation(4000).tolist() for q in by_query}
    run = run_of({q: {f"d{n}": float(-place) for place, n in enumerate(order)} for q, order in ranks.items()})
    chosen = [
        measure(name) for name in ("nDCG", "nDCG@2000", "AP", "AP(rel=3)@1500", "nDCG(judged_only=True)")
    ]
    values = Evaluator(chosen, judged_of(by_query)).values(run)
    for column, metric in enumerate(chosen):
        assert values[:, column].tolist() == by_ir_measures(metric, qrels_of(by_query), run, by_query)


@pytest.mark.parametrize(
    "name",
    [
        "Bpref", "infAP", "SetF", "SetAP", "IPrec@0.1", "ERR_IA@10", "StRecall@10", "NumQ", "NumRel(rel=2)",
        "RR(judged_only=True)@10", "P(rel=0)@5", "P@0", "P",
        "alpha_nDCG", "alpha_nDCG@21", "alpha_nDCG(alpha=1.5)@5", "alpha_nDCG(judged_only=True)@5",
        "Cover(rel=0)@5", "Cover(rel=4,partial=4)@5", "Cover(weights='none')@5", "nCover(rel=True)@5",
        "P(depth=3)@5",
    ],
)  # fmt: skip
def test_measures_that_columns_cannot_compute_are_not_supported(name: str) -> None:
    assert not supported(ir_measures.parse_measure(name))


def test_queries_without_judgments_results_or_positive_labels_have_zeros() -> None:
    judged = Judged.from_qrels(qrels_of({"q1": {"d1": 1}}), ["q2", "q1"])
    assert judged.query_ids == ("q2", "q1")
    for run in (run_of({"q2": {"d1": 1}}), run_of({})):
        assert not Evaluator(MEASURES, judged).values(run).any()
    nothing = Evaluator(MEASURES, Judged.from_qrels([])).values(run_of({"q": {"d": 1}}))
    assert nothing.shape == (0, len(MEASURES))
    # trec_eval hangs on these.
    negative = judged_of({"q1": {"d0": 5, "d2": 3}, "q2": {"d1": -1, "d3": -2}})
    names = ("nDCG", "nDCG@5", "P@1", "AP", "SetR", "Judged@5")
    values = Evaluator([measure(name) for name in names], negative).values(
        run_of({"q1": {"d0": 1.0}, "q2": {"d1": 1.0}})
    )
    assert values[1].tolist() == [0] * 6


def test_the_best_label_of_a_passage_counts() -> None:
    rows = [ir_measures.Qrel("q", "d", label, str(n)) for n, label in enumerate((0, 3, 1))]
    judged = Judged.from_qrels(rows)
    assert judged.labels.tolist() == [3]
    assert Evaluator([ir_measures.P(rel=3) @ 1], judged).values(run_of({"q": {"d": 1}})).tolist() == [[1]]
