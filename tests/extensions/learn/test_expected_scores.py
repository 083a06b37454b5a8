"""Expected nDCG and AP with learned labels, against naive computations and tracks whose truth is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import pytrec_eval
from drawn_pools import drawn_query
from scipy.special import ndtr
from scipy.stats import norm

from trecexam.extensions.learn.arithmetic.drawn_measures import drawn_ap, drawn_ndcg
from trecexam.extensions.learn.arithmetic.expected_scores import ExpectedScores, expected_scores
from trecexam.extensions.learn.arithmetic.learning import fit, predict
from trecexam.extensions.learn.arithmetic.ordinal import GRID, OrdinalModel, Unseen, fit_ordinal
from trecexam.extensions.learn.arithmetic.pooled import PooledQueryToLearn
from trecexam.extensions.learn.arithmetic.posterior_labels import PosteriorLabels
from trecexam.extensions.learn.arithmetic.retrieval import retrieval
from trecexam.extensions.learn.splits import most_retrieved
from trecexam.scores.correlation import half_width

NOISE = np.array([0.6, 1.0, 1.6, 2.5])


def track(seed: int, n: int = 8, passages: int = 40) -> list[PooledQueryToLearn]:
    return [
        drawn_query(np.random.default_rng([seed, at]), f"q{at:02}", NOISE, passages=passages)
        for at in range(n)
    ]


def hiding(queries: Sequence[PooledQueryToLearn], share: float, seed: int) -> list[PooledQueryToLearn]:
    rng = np.random.default_rng(seed)
    return [query.hiding(rng.random(len(query.doc_ids)) < share) for query in queries]


def naive(query: PooledQueryToLearn, labels: np.ndarray) -> np.ndarray:
    """nDCG@10 and AP(rel=2) of each run, by trec_eval; shape (2, runs)."""
    qrels = {"q": {str(at): int(label) for at, label in enumerate([*labels, *query.elsewhere])}}
    ndcg = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})
    ap = pytrec_eval.RelevanceEvaluator(qrels, {"map"}, relevance_level=2)
    values = []
    for row in query.ranks:
        run = {"q": {str(at): float(-rank) for rank, at in enumerate(row) if at >= 0}}
        values.append((ndcg.evaluate(run)["q"]["ndcg_cut_10"], ap.evaluate(run)["q"]["map"]))
    return np.array(values).T


def test_measures_of_draws_are_those_of_trec_eval_on_each_draw() -> None:
    rng = np.random.default_rng(1)
    query = replace(track(1, 1)[0], elsewhere=np.array([3.0, 1.0]))
    query.ranks[2, 6:] = -1
    labels = rng.integers(0, 4, size=(5, 40)).astype(float)
    ndcg = drawn_ndcg(query.ranks, labels, 10, query.elsewhere)
    ap = drawn_ap(query.ranks, labels, 2, query.elsewhere)
    for at, of_draw in enumerate(labels):
        assert np.stack([ndcg[at], ap[at]]) == pytest.approx(naive(query, of_draw))
    nothing = np.zeros((1, 40))
    assert not drawn_ndcg(query.ranks, nothing, 10, np.empty(0)).any()
    assert not drawn_ap(query.ranks, nothing, 2, np.empty(0)).any()


def test_the_expected_scores_of_a_query_are_those_summed_over_all_labels_of_its_unjudged_passage() -> None:
    """One passage of a query is not judged, so each of its four labels can be gone through."""
    queries = track(2)
    hidden = np.zeros(40, bool)
    hidden[queries[0].ranks[0, 1]] = True
    seen = [queries[0].hiding(hidden), *hiding(queries[1:], 0.5, 0)]
    learned = fit([query.passages for query in seen])
    labels = PosteriorLabels(learned, seen, 2)
    model, passages = labels.fitted.ordinal, seen[0].passages
    prediction = predict(learned, passages)
    (row,) = np.flatnonzero(hidden)
    gains = learned.steps.gains(passages.features)
    residuals = (passages.judgments - gains)[~hidden]
    kernel = learned.kernel
    assert kernel is not None
    across = kernel.between(passages.vectors[~hidden], passages.vectors[hidden])
    mean = gains[row] + (across.T @ np.linalg.solve(kernel.judged(passages.vectors[~hidden]), residuals))[0]
    scores = model.scores(
        np.array([mean]), prediction.deviations[hidden], retrieval(learned, seen)[0][hidden]
    )[0]
    effects = model.effects(labels._unseen[0])
    at_least = [
        math.fsum(p * ndtr(score + at) for at, p in zip(GRID, effects[step], strict=True))
        for step, score in enumerate(scores)
    ]
    probabilities = -np.diff([1.0, *np.minimum.accumulate(at_least), 0.0])
    expected = sum(
        p * naive(seen[0], np.where(hidden, label, seen[0].judgments))
        for label, p in enumerate(probabilities.tolist())
    )
    drawn = expected_scores(learned, seen, 10, 2, draws=2000)
    assert drawn.values[..., 0] == pytest.approx(expected, abs=0.015)
    assert (
        np.ptp([naive(seen[0], np.where(hidden, label, seen[0].judgments))[0, 0] for label in (0, 3)]) > 0.05
    )


def test_a_pool_that_is_judged_as_a_whole_has_its_scores_and_no_variance_of_labels() -> None:
    queries = track(3, 5)
    scores = expected_scores(fit([query.passages for query in queries]), queries, 10, 2, draws=5)
    every = np.stack([naive(query, query.judgments) for query in queries], axis=-1)
    assert scores.values == pytest.approx(every)
    assert scores.variances(these_queries=True) == pytest.approx(np.zeros((2, 4)), abs=1e-20)
    assert scores.variances() == pytest.approx(every.var(axis=-1, ddof=1) / 5)


def test_the_variance_is_that_of_the_formula() -> None:
    rng = np.random.default_rng(4)
    values, drawn, refitted = rng.random((2, 3, 7)), rng.random((6, 2, 3)), rng.random((4, 2, 3))
    scores = ExpectedScores(values, drawn, refitted)
    for measure in range(2):
        for run in range(3):
            labels = np.var(drawn[:, measure, run], ddof=1)
            of_fits = refitted[:, measure, run]
            shared = 3 / 4 * sum((x - of_fits.mean()) ** 2 for x in of_fits)
            queries = np.var(values[measure, run], ddof=1) / 7
            total = queries + labels + (1 + 1 / 6) * (labels + shared)
            assert scores.variances()[measure, run] == pytest.approx(total)
            assert scores.variances(these_queries=True)[measure, run] == pytest.approx(labels + shared)


def test_draws_keep_judgments_and_passages_without_a_text_have_label_0() -> None:
    queries = hiding(track(5), 0.5, 1)
    first = queries[0]
    # Two passages more, at the end of the pool: one is judged, of neither there is a text.
    queries[0] = replace(
        first, doc_ids=(*first.doc_ids, "y", "z"), judgments=np.append(first.judgments, [2.0, np.nan])
    )
    drawn = PosteriorLabels(fit([query.passages for query in queries]), queries, 50).draw(0)
    known = ~np.isnan(first.judgments)
    assert (drawn[:, :-2][:, known] == first.judgments[known]).all()
    assert (drawn[:, -2] == 2).all()
    assert not drawn[:, -1].any()
    assert set(np.unique(drawn[:, :-2][:, ~known])) <= {0, 1, 2, 3}
    assert (drawn[:, :-2][:, ~known].std(axis=0) > 0).any()


def test_the_same_seed_gives_the_same_scores_and_another_one_others() -> None:
    queries = hiding(track(6, 5), 0.5, 2)
    learned = fit([query.passages for query in queries])
    once, again, other = (expected_scores(learned, queries, 10, 2, 5, seed).drawn for seed in (0, 0, 1))
    assert (once == again).all()
    assert (once != other).any()


def test_the_ordinal_model_is_the_likeliest_one_with_its_priors() -> None:
    rng = np.random.default_rng(7)
    queries = []
    for _ in range(8):
        means, covariates = rng.uniform(-0.2, 3, 40), rng.normal(size=(40, 2))
        latent = means + 0.3 * covariates[:, 0] + 0.5 * rng.normal(size=40) + 0.2 * rng.normal()
        queries.append(
            Unseen(means, np.full(40, 0.7), covariates, np.digitize(latent, [0.7, 1.5, 2.4]).astype(float))
        )
    scale = np.arange(4.0)
    fitted = fit_ordinal(queries, scale)

    def worth(model: OrdinalModel) -> float:
        total = -0.5 * 4 * (model.level**2 + model.slope**2) - 0.5 * float(model.weights @ model.weights)
        for query in queries:
            spread = query.deviations * np.exp(
                model.level + model.slope * np.sqrt(np.clip(query.means / 3, 0, 1))
            )
            moved = query.means + query.covariates @ model.weights
            for step, cut in enumerate(model.cuts, 1):
                side = np.where(query.labels >= step, 1, -1)
                total += norm.logcdf(side * (moved - cut) / spread).sum()
        return total

    best = worth(fitted)
    for change in (-0.05, 0.05):
        assert worth(replace(fitted, level=fitted.level + change)) < best
        assert worth(replace(fitted, slope=fitted.slope + change)) < best
        for at in range(2):
            assert worth(replace(fitted, weights=fitted.weights + change * np.eye(2)[at])) < best
        for at in range(3):
            assert worth(replace(fitted, cuts=fitted.cuts + change * np.eye(3)[at])) < best
    assert fitted.weights == pytest.approx([0.3, 0], abs=0.1)
    assert (fitted.variations > 0.1).all()


def test_a_query_that_is_judged_low_has_effects_below_0_and_one_without_judgments_around_it() -> None:
    model = OrdinalModel(np.arange(2.0), np.array([0.5]), 0.0, 0.0, np.zeros(0), np.array([0.5]))
    low = Unseen(np.full(10, 0.6), np.ones(10), np.empty((10, 0)), np.zeros(10))
    assert model.effects(low)[0] @ GRID < -0.3
    assert model.effects(None)[0] @ GRID == pytest.approx(0)
    assert model.effects(None).sum(axis=1) == pytest.approx(1)


def test_over_queries_a_label_is_as_likely_as_was_fitted_however_far_queries_vary() -> None:
    for variation in (0.02, 0.8):
        model = OrdinalModel(
            np.arange(3.0), np.array([0.5, 2.0]), 0.1, -0.2, np.array([0.3]), np.array([variation, 0.4])
        )
        means, deviations, covariates = np.array([0.2, 1.9]), np.array([0.5, 0.8]), np.array([[1.0], [-1.0]])
        spread = deviations * np.exp(0.1 - 0.2 * np.sqrt(means / 2))
        marginal = ((means + 0.3 * covariates[:, 0])[:, None] - [0.5, 2.0]) / spread[:, None]
        effects = np.random.default_rng(3).normal(size=(200_000, 1, 1)) * model.variations
        drawn = ndtr(model.scores(means, deviations, covariates) + effects).mean(axis=0)
        assert drawn == pytest.approx(ndtr(marginal), abs=0.003)


def test_votes_weigh_by_rank_and_by_how_good_a_run_is() -> None:
    queries = hiding(track(8, 3), 0.4, 3)
    learned = fit([query.passages for query in queries])
    gained, votes = np.zeros(4), np.zeros(4)
    for query in queries:
        gains = predict(learned, query.passages).gains
        for run, row in enumerate(query.ranks):
            for rank, at in enumerate(row, 1):
                gained[run] += gains[at] / math.log2(rank + 1)
                votes[run] += 1 / math.log2(rank + 1)
    quality = (gained / votes - np.mean(gained / votes)) / np.std(gained / votes)
    by_hand = []
    for query in queries:
        for at in range(40):
            of = [
                sum(1 / math.log2(rank + 1) for rank, doc in enumerate(row, 1) if doc == at)
                for row in query.ranks
            ]
            by_hand.append((math.log1p(sum(of)), float(np.dot(of, quality)), sum(of)))
    standard = (np.array(by_hand) - np.mean(by_hand, axis=0)) / np.std(by_hand, axis=0)
    assert np.vstack(retrieval(learned, queries)) == pytest.approx(standard)


def test_where_the_most_retrieved_alone_are_judged_relevance_does_not_bend_with_votes() -> None:
    queries = track(8, 3)
    hidden = (
        most_retrieved([q.judgments for q in queries], [q.ranks for q in queries], 10).repeats[0][0].hidden
    )
    for seen, columns in (
        (hiding(queries, 0.4, 3), 3),
        ([query.hiding(of_query) for query, of_query in zip(queries, hidden, strict=True)], 2),
    ):
        of_queries = retrieval(fit([query.passages for query in seen]), seen)
        assert {each.shape for each in of_queries} == {(40, columns)}
        assert np.vstack(of_queries).std(axis=0) == pytest.approx(np.ones(columns))


def test_intervals_hold_the_truth_of_a_known_model_as_often_as_they_say() -> None:
    """Five tracks of eight queries, half of their judgments known; the population is 150 others."""
    every = [drawn_query(np.random.default_rng([99, at]), "q", NOISE, passages=40) for at in range(150)]

    def truth(queries: Sequence[PooledQueryToLearn]) -> np.ndarray:
        return np.mean(
            [
                (drawn_ndcg(q.ranks, q.judgments[None], 10, q.elsewhere)[0],
                 drawn_ap(q.ranks, q.judgments[None], 2, q.elsewhere)[0])
                for q in queries
            ],
            axis=0,
        )  # fmt: skip

    population = truth(every)
    held, held_here, narrow = [], [], []
    for seed in range(5):
        queries = track(100 + seed, 8)
        seen = hiding(queries, 0.5, seed)
        scores = expected_scores(fit([query.passages for query in seen]), seen, 10, 2, draws=20)
        here = scores.variances(these_queries=True)
        for variances, true, into in (
            (scores.variances(), population, held),
            (here, truth(queries), held_here),
        ):
            into.append(np.abs(scores.means - true) <= half_width(np.sqrt(variances), 10))
        narrow.append(np.abs(scores.means - population) <= np.sqrt(scores.variances()) / 2)
    assert 0.85 <= np.mean(held) <= 1
    assert np.mean(held_here) >= 0.75
    # And they are not merely wide.
    assert np.mean(narrow) < 0.75
