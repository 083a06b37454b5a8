"""nDCG and AP of drawn labels against trec_eval, and expected scores against a sum over all labels."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from drawn_pools import drawn_query, drawn_track

from trecexam.extensions.learn.arithmetic.learning import by_regression, fit
from trecexam.extensions.learn.arithmetic.passages import QueryPassages
from trecexam.extensions.learn.arithmetic.scores import (
    drawn_ap,
    drawn_labels,
    drawn_ndcg,
    expected_scores,
)


def naive(query: QueryPassages, labels: np.ndarray, relevant: int = 2) -> np.ndarray:
    """nDCG@10 and AP of each run, by trec_eval; shape (2, runs)."""
    qrels = {"q": {str(at): int(label) for at, label in enumerate([*labels, *query.elsewhere])}}
    ndcg = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})
    ap = pytrec_eval.RelevanceEvaluator(qrels, {"map"}, relevance_level=relevant)
    values = []
    for row in query.ranks:
        run = {"q": {str(at): float(-rank) for rank, at in enumerate(row) if at >= 0}}
        values.append((ndcg.evaluate(run)["q"]["ndcg_cut_10"], ap.evaluate(run)["q"]["map"]))
    return np.array(values).T


def test_measures_of_drawn_labels_equal_trec_eval_and_ir_measures() -> None:
    rng = np.random.default_rng(1)
    query = replace(drawn_track(1, 1)[0], elsewhere=np.array([3.0, 1.0]))
    query.ranks[2, 6:] = -1
    labels = rng.integers(0, 4, size=(5, 40)).astype(float)
    ndcg = drawn_ndcg(query.ranks, labels, 10, query.elsewhere)
    ap = drawn_ap(query.ranks, labels, 2, query.elsewhere)
    for at, of_draw in enumerate(labels):
        assert np.stack([ndcg[at], ap[at]]) == pytest.approx(naive(query, of_draw))
        qrels = [
            ir_measures.Qrel("q", str(doc), int(label))
            for doc, label in enumerate([*of_draw, *query.elsewhere])
        ]
        ranked = [
            ir_measures.ScoredDoc("q", str(doc), -rank) for rank, doc in enumerate(query.ranks[0].tolist())
        ]
        measure = ir_measures.parse_measure("AP(rel=2)@20")
        assert ap[at, 0] == pytest.approx(measure.calc_aggregate(qrels, ranked))
    nothing = np.zeros((1, 40))
    assert not drawn_ndcg(query.ranks, nothing, 10, np.empty(0)).any()
    assert not drawn_ap(query.ranks, nothing, 2, np.empty(0)).any()
    # A negative label has gain 0, as in trec_eval.
    assert (drawn_ndcg(query.ranks, np.maximum(labels - 1, 0), 10, query.elsewhere) >= 0).all()
    negative = np.where(labels == 0, -1.0, labels)
    assert drawn_ndcg(query.ranks, negative, 10, query.elsewhere).tolist() == ndcg.tolist()


def test_labels_are_drawn_with_their_probability_and_judgments_stay() -> None:
    query = drawn_track(2, 1)[0].hiding(np.arange(40) % 2 == 0)
    p = np.sort(np.random.default_rng(0).random((2, 40)), axis=0)[::-1]
    scale, n = np.array([0.0, 1.0, 3.0]), 4000
    drawn = drawn_labels(p, scale, np.random.default_rng(1).random((n, 40)), query)
    assert (drawn[:, query.judged] == query.judgments[query.judged]).all()
    for at in np.flatnonzero(~query.judged):
        for step, label in enumerate((1.0, 3.0)):
            error = math.sqrt(p[step, at] * (1 - p[step, at]) / n)
            assert abs((drawn[:, at] >= label).mean() - p[step, at]) <= 5 * error


def test_expected_scores_equal_the_sum_over_all_labels() -> None:
    """At most six binary passages per pool are unjudged, so that all 64 labellings can be enumerated."""
    queries = [
        drawn_query(np.random.default_rng([3, at]), f"q{at}", passages=14, depth=12, labels=2)
        for at in range(5)
    ]
    queries = [
        query.hiding(np.isin(np.arange(14), query.ranks[0, :open_ranks]))
        for query, open_ranks in zip(queries, (6, 5, 3, 1, 0), strict=True)
    ]
    queries[1] = replace(queries[1], elsewhere=np.ones(2))
    learned, draws = fit(queries), 4000
    scores = expected_scores(learned, queries, 10, 1, draws=draws)
    for at, query in enumerate(queries):
        p = by_regression(learned, query)[0]
        rows = np.flatnonzero(~query.judged)
        mean, square = np.zeros((2, 4)), np.zeros((2, 4))
        for labels in itertools.product((0, 1), repeat=len(rows)):
            weight = math.prod(
                p[row] if label else 1 - p[row] for row, label in zip(rows, labels, strict=True)
            )
            whole = query.judgments.copy()
            whole[rows] = labels
            values = naive(query, whole, 1)
            mean += weight * values
            square += weight * values**2
        error = np.sqrt(np.maximum(square - mean**2, 0) / draws)
        assert (np.abs(scores[..., at] - mean) <= 4.5 * error + 1e-6).all()
        assert (error > 0).any() == bool(len(rows))


def test_a_fully_judged_pool_has_its_scores() -> None:
    queries = drawn_track(4, 5)
    every = np.stack([naive(query, query.judgments) for query in queries], axis=-1)
    assert expected_scores(fit(queries), queries, 10, 2, draws=5) == pytest.approx(every)


def test_scores_do_not_depend_on_the_order_of_runs_and_on_other_queries() -> None:
    queries = drawn_track(8, 5, known=0.5)
    learned = fit(queries)
    once = expected_scores(learned, queries, 10, 2, 5)
    turned = [replace(query, ranks=query.ranks[::-1]) for query in queries]
    np.testing.assert_allclose(once[:, [3, 2, 1, 0]], expected_scores(learned, turned, 10, 2, 5), atol=1e-9)
    assert (once[..., :2] == expected_scores(learned, queries[:2], 10, 2, 5)).all()
