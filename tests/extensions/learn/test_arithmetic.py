"""The arithmetic of learning, against naive computations of the same formulas."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import pytrec_eval
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score

from trecexam.extensions.learn.arithmetic.cuts import fit_cuts, labels_of
from trecexam.extensions.learn.arithmetic.features import max_sim, query_features
from trecexam.extensions.learn.arithmetic.learning import QueryPassages, fit, predict
from trecexam.extensions.learn.arithmetic.ndcg import ndcg
from trecexam.extensions.learn.arithmetic.process import (
    Kernel,
    choose_kernel,
    joint_posterior,
    leave_one_out,
    posterior,
)
from trecexam.extensions.learn.arithmetic.steps import fit_steps


def unit(rng: np.random.Generator, n: int, dimension: int = 6) -> np.ndarray:
    vectors = rng.normal(size=(n, dimension))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def covariance(kernel: Kernel, a: np.ndarray, b: np.ndarray) -> float:
    cosine = float(a.astype(float) @ b.astype(float))
    return kernel.variance * (kernel.constant + math.exp((cosine - 1) / kernel.length))


def query(rng: np.random.Generator, name: str, n: int = 30, known: float = 1.0) -> QueryPassages:
    vectors = unit(rng, n)
    features = np.hstack([vectors[:, :3].astype(float), rng.normal(size=(n, 2))])
    labels = np.clip(np.round(1.5 + 1.5 * vectors[:, 0] + rng.normal(size=n) / 2), 0, 3)
    judgments = np.where(rng.random(n) < known, labels, np.nan)
    return QueryPassages(name, tuple(f"{name}-{i:02}" for i in range(n)), vectors, features, judgments)


def test_features_are_those_of_their_definitions() -> None:
    rng = np.random.default_rng(1)
    question, items, passages = unit(rng, 1)[0], unit(rng, 3), unit(rng, 40)
    ratings = rng.integers(-1, 6, size=(40, 3)).astype(np.int8)
    ratings[0] = -1
    sims, lengths = rng.random(40).tolist(), rng.integers(1, 500, size=40).tolist()
    got = query_features(question, items, passages, sims, lengths, ratings)
    nearest = sorted(range(40), key=lambda at: -float(passages[at] @ question))[:20]
    centroid = np.mean([passages[at] for at in nearest], axis=0)
    for row in range(40):
        cosines = [float(passages[row] @ item) for item in items]
        rated = [int(r) for r in ratings[row] if r >= 0] or [0]
        raw = [
            float(passages[row] @ question),
            max(cosines),
            sum(cosines) / 3,
            sims[row],
            float(passages[row] @ centroid) / math.sqrt(float(centroid @ centroid)),
            math.log(1 + lengths[row]),
            max(rated),
            sum(rated) / len(rated),
        ]
        assert got[row, :8] == pytest.approx(raw, abs=1e-5)
    assert got[:, 8:].mean(axis=0) == pytest.approx(np.zeros(8), abs=1e-6)
    assert got[:, 8:].std(axis=0) == pytest.approx(np.ones(8), abs=1e-6)


def test_a_feature_that_all_passages_share_is_standardised_to_0() -> None:
    passages = np.tile(np.array([[0.6, 0.8]], np.float32), (4, 1))
    got = query_features(
        np.array([1, 0], np.float32), np.empty((0, 2), np.float32), passages, [1.0] * 4, [9] * 4
    )
    assert got.shape == (4, 12)
    assert not got[:, 6:].any()
    assert not got[:, 1:3].any()


def test_late_interaction_is_the_mean_of_each_query_tokens_best_cosine() -> None:
    rng = np.random.default_rng(2)
    of_query, of_passage = unit(rng, 4), unit(rng, 9)
    naive = sum(max(float(a @ b) for b in of_passage) for a in of_query) / 4
    assert max_sim(of_query, of_passage) == pytest.approx(naive, abs=1e-6)
    assert max_sim(of_query, of_passage[:0]) == 0


def test_the_gain_is_the_sum_of_each_steps_height_times_its_probability() -> None:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(120, 3)) * [1, 10, 0.1] + [5, 0, 0]
    labels = np.digitize(features[:, 0] - 5 + rng.normal(size=120), [-0.5, 0.8]).astype(float)
    labels[labels == 2] = 4
    steps = fit_steps(features, labels, c=0.5)
    standard = (features - features.mean(axis=0)) / features.std(axis=0)
    expected = np.zeros(120)
    for below, label in itertools.pairwise((0, 1, 4)):
        regression = LogisticRegression(C=0.5, tol=1e-10, max_iter=1000).fit(standard, labels >= label)
        expected += (label - below) * regression.predict_proba(standard)[:, 1]
    assert steps.gains(features) == pytest.approx(expected, abs=1e-3)


def test_the_process_gives_what_solving_the_joint_normal_by_hand_gives() -> None:
    rng = np.random.default_rng(4)
    kernel = Kernel(0.2, 0.4, 0.5, 1.7)
    judged, passages, residuals = unit(rng, 5), unit(rng, 3), rng.normal(size=5)
    mean, variance = posterior(kernel, judged, residuals, passages)
    among = np.array([[covariance(kernel, a, b) for b in judged] for a in judged]) + 0.5 * 1.7 * np.eye(5)
    for at, passage in enumerate(passages):
        across = np.array([covariance(kernel, a, passage) for a in judged])
        assert mean[at] == pytest.approx(across @ np.linalg.inv(among) @ residuals, abs=1e-5)
        naive = 1.7 * (0.2 + 1 + 0.5) - across @ np.linalg.inv(among) @ across
        assert variance[at] == pytest.approx(naive, abs=1e-5)


def test_without_judgments_of_the_query_the_process_says_nothing_and_is_as_uncertain_as_before() -> None:
    passages = unit(np.random.default_rng(5), 3)
    mean, variance = posterior(Kernel(0.1, 0.3, 0.3, 2.0), passages[:0], np.empty(0), passages)
    assert mean.tolist() == [0, 0, 0]
    assert variance == pytest.approx([2.8] * 3)


def test_leaving_one_out_is_the_process_of_all_others() -> None:
    rng = np.random.default_rng(6)
    kernel = Kernel(variance=0.6)
    vectors, residuals = unit(rng, 8), rng.normal(size=8)
    naive = [
        posterior(kernel, np.delete(vectors, at, 0), np.delete(residuals, at), vectors[at : at + 1])[0][0]
        for at in range(8)
    ]
    assert leave_one_out(kernel, vectors, residuals) == pytest.approx(naive, abs=1e-6)


def test_the_kernel_that_is_chosen_is_the_most_likely_one_and_its_variance_cannot_be_bettered() -> None:
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(7)
    truth = Kernel(0.3, 0.5, 0.3, 2.0)
    queries = []
    for _ in range(6):
        vectors = unit(rng, 20)
        queries.append((vectors, rng.multivariate_normal(np.zeros(20), truth.judged(vectors))))

    def likelihood(kernel: Kernel) -> float:
        return sum(multivariate_normal.logpdf(r, cov=kernel.judged(v)) for v, r in queries)

    candidates = [Kernel(0.03, 0.1, 3.0), Kernel(0.3, 0.5, 0.3), Kernel(0.1, 0.2, 1.0)]
    chosen = choose_kernel(queries, candidates)
    shapes = [(k.constant, k.length, k.noise) for k in candidates]
    best = {
        shape: max(likelihood(Kernel(*shape, variance)) for variance in np.geomspace(0.05, 20, 60))
        for shape in shapes
    }
    assert likelihood(chosen) >= max(best.values())
    assert (chosen.constant, chosen.length, chosen.noise) == max(best, key=best.__getitem__)


def test_each_cut_has_the_greatest_kappa_of_all_cuts() -> None:
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


def test_where_no_cut_beats_chance_no_passage_gets_the_label() -> None:
    labels, scale = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0])
    assert fit_cuts(np.array([1.0, 1.0, 1.0, 1.0]), labels, scale).tolist() == [math.inf]
    assert fit_cuts(np.array([2.0, 1.0, 2.0, 1.0]), labels, scale).tolist() == [math.inf]


def test_ndcg_is_that_of_trec_eval_and_condensed_lists_close_their_gaps() -> None:
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


def test_judged_passages_keep_their_judgment_and_the_others_learn_from_it() -> None:
    rng = np.random.default_rng(10)
    queries = [query(rng, f"q{at}", known=0.6) for at in range(6)]
    learned = fit(queries)
    for of_query in queries:
        prediction = predict(learned, of_query)
        known = ~np.isnan(of_query.judgments)
        assert (prediction.gains[known] == of_query.judgments[known]).all()
        assert (prediction.labels[known] == of_query.judgments[known]).all()
        assert not prediction.deviations[known].any()
        assert (prediction.deviations[~known] > 0).all()
        assert ((prediction.gains >= 0) & (prediction.gains <= 3)).all()


def test_the_same_judgments_give_the_same_predictions_to_the_last_bit() -> None:
    def once() -> list[bytes]:
        rng = np.random.default_rng(11)
        queries = [query(rng, f"q{at}", known=0.5) for at in range(4)]
        learned = fit(queries)
        return [predict(learned, of_query).gains.tobytes() for of_query in queries]

    assert once() == once()


def test_hidden_judgments_change_nothing_that_is_predicted() -> None:
    rng = np.random.default_rng(12)
    queries = [query(rng, f"q{at}") for at in range(5)]
    hidden = rng.random(30) < 0.5
    other = np.where(hidden, 3 - queries[0].judgments, queries[0].judgments)
    changed = QueryPassages("q0", queries[0].doc_ids, queries[0].vectors, queries[0].features, other)
    predictions = []
    for first in (queries[0], changed):
        seen = [replace(first, judgments=np.where(hidden, np.nan, first.judgments)), *queries[1:]]
        predictions.append(predict(fit(seen), seen[0]).gains)
    assert (predictions[0] == predictions[1]).all()


@pytest.mark.parametrize(
    ("labels", "why"), [([math.nan] * 30, "no judgments"), ([1.0] * 30, "all 30 judgments are 1")]
)
def test_what_cannot_be_learned_from_is_named(labels: list[float], why: str) -> None:
    one = query(np.random.default_rng(13), "q")
    only = QueryPassages("q", one.doc_ids, one.vectors, one.features, np.array(labels))
    with pytest.raises(ValueError, match=why):
        fit([only])


def test_one_query_alone_can_be_learned_from() -> None:
    one = query(np.random.default_rng(14), "q", known=0.5)
    assert predict(fit([one]), one).gains.std() > 0


def test_the_joint_posterior_has_the_means_and_variances_of_the_posterior() -> None:
    rng = np.random.default_rng(6)
    kernel, judged, passages = Kernel(0.1, 0.3, 0.4, 1.7), unit(rng, 8), unit(rng, 5)
    residuals = rng.normal(size=8)
    for n in (0, 8):
        mean, variance = posterior(kernel, judged[:n], residuals[:n], passages)
        joint_mean, covariances = joint_posterior(kernel, judged[:n], residuals[:n], passages)
        assert joint_mean == pytest.approx(mean, abs=1e-9)
        assert np.diag(covariances) == pytest.approx(variance, rel=1e-5)
