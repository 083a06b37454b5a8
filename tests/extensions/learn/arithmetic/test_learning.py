"""The model fitted on judgments, and its predictions for unjudged passages."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import pytrec_eval
from drawn_pools import drawn_query, drawn_track
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from trecexam.extensions.learn.arithmetic.check import ndcg
from trecexam.extensions.learn.arithmetic.learning import (
    Learned,
    by_regression,
    fit,
    fit_cuts,
    labels_of,
    predict,
)
from trecexam.extensions.learn.arithmetic.passages import QueryPassages
from trecexam.extensions.learn.arithmetic.process import carried, carried_from_others, choose_kernel
from trecexam.extensions.learn.arithmetic.regression import expected, fit_regression, unseen


def test_each_cut_maximises_kappa_over_all_cuts() -> None:
    rng = np.random.default_rng(8)
    labels = rng.integers(0, 3, size=50).astype(float)
    gains = np.round(labels + rng.normal(size=50), 1)
    scale = np.array([0.0, 1.0, 2.0])
    cuts = fit_cuts(gains, labels, scale)
    for cut, step in zip(cuts, (1, 2), strict=True):
        best = max(cohen_kappa_score(labels >= step, gains > g) for g in np.unique(gains)[:-1])
        assert cohen_kappa_score(labels >= step, gains >= cut) == pytest.approx(best)
    by_hand = [sum(gain >= cut for cut in cuts) for gain in gains]
    assert labels_of(gains, cuts, scale).tolist() == by_hand


def test_if_no_cut_is_better_than_chance_no_passage_gets_the_label() -> None:
    labels, scale = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0])
    assert fit_cuts(np.array([1.0, 1.0, 1.0, 1.0]), labels, scale).tolist() == [math.inf]
    assert fit_cuts(np.array([2.0, 1.0, 2.0, 1.0]), labels, scale).tolist() == [math.inf]


def test_ndcg_equals_trec_eval_and_condensed_lists_drop_unjudged_passages() -> None:
    rng = np.random.default_rng(9)
    gains = rng.integers(0, 4, size=15).astype(float)
    ranks = np.array([rng.permutation(15)[:12] for _ in range(4)], np.int32)
    ranks[3, 5:] = -1
    qrels = {"q": {str(at): int(gain) for at, gain in enumerate(gains)}}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})
    for row, got in zip(ranks, ndcg(ranks, gains, 10), strict=True):
        run = {"q": {str(at): float(-rank) for rank, at in enumerate(row) if at >= 0}}
        assert got == pytest.approx(evaluator.evaluate(run)["q"]["ndcg_cut_10"])
    holes = gains.copy()
    holes[rng.permutation(15)[:6]] = np.nan
    condensed = [[at for at in row if at >= 0 and not np.isnan(holes[at])] for row in ranks]
    closed = np.full_like(ranks, -1)
    for number, row in enumerate(condensed):
        closed[number, : len(row)] = row
    assert ndcg(ranks, holes, 10) == pytest.approx(ndcg(closed, np.nan_to_num(holes), 10))


def unseen_gains(
    queries: list[QueryPassages], learned: Learned
) -> tuple[list[np.ndarray], list[tuple[np.ndarray, np.ndarray]]]:
    """Gains of judged passages by regressions without their query; vectors and residuals."""
    predicted = unseen(queries, learned.regression.columns, learned.scale)
    gains = [expected(p, learned.scale)[q.judged] for p, q in zip(predicted, queries, strict=True)]
    return gains, [
        (query.vectors[query.judged], query.judgments[query.judged] - gain)
        for query, gain in zip(queries, gains, strict=True)
    ]


def test_predictions_equal_regression_process_and_cuts_combined_by_hand() -> None:
    queries = drawn_track(10, 8, known=0.5)
    learned = fit(queries)
    kernel, scale = learned.kernel, learned.scale
    assert kernel is not None
    gains, residuals = unseen_gains(queries, learned)
    assert kernel == choose_kernel(residuals)
    moved = [gain + carried_from_others(kernel, *of) for gain, of in zip(gains, residuals, strict=True)]
    labels = np.concatenate([query.judgments[query.judged] for query in queries])
    assert learned.cuts.tolist() == fit_cuts(np.concatenate(moved), labels, scale).tolist()
    query = queries[3]
    prediction, known = predict(learned, query), query.judged
    reached = query.judgments >= scale[1:, None]
    p = fit_regression(queries, learned.regression.columns, scale).probabilities(query)
    for at in np.flatnonzero(~known):
        shares = carried(kernel, query.vectors[known], query.vectors[at : at + 1])[0]
        steps = np.array([p[step, at] + shares @ (reached - p)[step, known] for step in range(3)])
        steps = np.minimum.accumulate(np.clip(steps, 1e-4, 1 - 1e-4))
        of_label = -np.diff([1, *steps, 0])
        gain = of_label @ scale
        assert prediction.gains[at] == pytest.approx(gain)
        assert prediction.deviations[at] == pytest.approx(math.sqrt(of_label @ (scale - gain) ** 2))
        label = int(sum(gain >= cut for cut in learned.cuts))
        assert prediction.labels[at] == label
        assert prediction.confidences[at] == pytest.approx(of_label[label])


@pytest.mark.slow
def test_the_process_is_used_if_it_lowers_the_squared_error_by_a_standard_error() -> None:
    counts = set()
    for seed in range(4):
        queries = drawn_track(30 + seed, 6, known=0.5)
        if seed % 2:
            # Labels that similar passages do not share.
            rng = np.random.default_rng(seed)
            queries = [
                replace(q, judgments=np.where(q.judged, rng.integers(0, 4, 40), np.nan)) for q in queries
            ]
        learned = fit(queries)
        gains, residuals = unseen_gains(queries, learned)
        kernel = choose_kernel(residuals)
        less = np.array(
            [sum(of[1] ** 2) - sum((of[1] - carried_from_others(kernel, *of)) ** 2) for of in residuals]
        )
        is_worth_it = less.sum() > less.std(ddof=1) * math.sqrt(len(less))
        assert (learned.kernel is not None) == is_worth_it
        counts.add(is_worth_it)
        if not is_worth_it:
            labels = np.concatenate([query.judgments[query.judged] for query in queries])
            assert (learned.cuts == fit_cuts(np.concatenate(gains), labels, learned.scale)).all()
    assert len(counts) == 2


def test_hidden_judgments_do_not_affect_predictions() -> None:
    queries = drawn_track(15, 5)
    hidden = np.random.default_rng(0).random(40) < 0.5
    other = replace(queries[0], judgments=np.where(hidden, 3 - queries[0].judgments, queries[0].judgments))
    seen = [[first.hiding(hidden), *queries[1:]] for first in (queries[0], other)]
    first, second = (predict(fit(of), of[0]) for of in seen)
    assert (first.gains == second.gains).all()
    assert (other.judgments != queries[0].judgments).any()


@st.composite
def pools(draw: st.DrawFn) -> list[QueryPassages]:
    """Small pools with edge cases: no vector, no background, no run, constant features."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([(0.0, 1.0), (0.0, 1.0, 2.0, 3.0), (1.0, 3.0), (0.0, 4.0)]))
    queries = []
    for at in range(draw(st.integers(1, 4))):
        n = draw(st.integers(2, 12))
        query = drawn_query(rng, f"q{at}", passages=n, depth=draw(st.integers(1, n)))
        judgments = rng.choice(scale, n).astype(float)
        judgments[rng.random(n) >= draw(st.sampled_from([0.0, 0.3, 1.0]))] = np.nan
        vectors = query.vectors * draw(st.sampled_from([0, 1]))
        background = query.background[: draw(st.sampled_from([0, 1, 5]))]
        features = query.features * draw(st.sampled_from([1, 1, 1e-12, 1e3, 0]))
        queries.append(
            replace(query, judgments=judgments, vectors=vectors, background=background, features=features)
        )
    # At least two different judgments.
    first = queries[0].judgments
    first[:2] = scale[0], scale[-1]
    return queries


@given(pools())
def test_in_any_pool_probabilities_decrease_and_labels_are_on_the_scale(queries: list[QueryPassages]) -> None:
    learned = fit(queries)
    given_labels = {label for query in queries for label in query.judgments[query.judged].tolist()}
    assert learned.scale.tolist() == sorted({0.0, *given_labels})
    for query in queries:
        prediction = predict(learned, query)
        p = by_regression(learned, query)
        assert ((p >= 0) & (p <= 1)).all()
        assert (np.diff(p, axis=0) <= 0).all()
        assert set(prediction.labels.tolist()) <= set(learned.scale.tolist())
        assert (prediction.labels[query.judged] == query.judgments[query.judged]).all()
        assert ((prediction.confidences >= 0) & (prediction.confidences <= 1)).all()
        assert (prediction.deviations[~query.judged] > 0).all()
