"""Certainty of the order of runs, against sampling and enumerating labels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from drawn_pools import drawn_query, drawn_track
from scipy.stats import norm

from trecexam.extensions.learn.arithmetic import settling
from trecexam.extensions.learn.arithmetic.drawn_measures import drawn_ndcg
from trecexam.extensions.learn.arithmetic.learning import by_regression, fit
from trecexam.extensions.learn.arithmetic.passages import QueryPassages
from trecexam.extensions.learn.arithmetic.regression import fit_regression
from trecexam.extensions.learn.arithmetic.scores import drawn_labels
from trecexam.extensions.learn.arithmetic.settling import Standing, standing, undecided

PAIRS = list(itertools.combinations(range(4), 2))


@pytest.fixture
def independent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels within a query are independent."""
    monkeypatch.setattr(settling, "_overdispersion", lambda *_: 1.0)


def without_model(known: Standing) -> Standing:
    return replace(known, model=np.zeros_like(known.model))


def made(*, runs: int = 4, seed: int = 0) -> Standing:
    """Three queries with a third of their passages judged."""
    rng = np.random.default_rng(seed)
    spreads = tuple(np.where(rng.random(n) < 1 / 3, 0, rng.random(n)) for n in (9, 7, 12))
    shares = tuple(
        np.where(rng.random((runs, len(of))) < 0.6, rng.random((runs, len(of))), 0) for of in spreads
    )
    labels = sum((of * spread**2) @ of.T for of, spread in zip(shares, spreads, strict=True)) / 9
    root = rng.normal(size=(runs, runs)) / 20
    return Standing(shares, spreads, rng.random(runs) / 4, np.asarray(labels), root @ root.T, 9)


@pytest.mark.usefixtures("independent")
def test_probabilities_of_orders_are_close_to_those_of_drawn_labels() -> None:
    queries = drawn_track(1, 20, known=0.3, passages=20, depth=15)
    learned = fit(queries, neighbours=False)
    known = without_model(standing(learned, queries, 10))
    rng, draws = np.random.default_rng(0), 2000
    drawn = np.mean(
        [
            drawn_ndcg(
                query.ranks,
                drawn_labels(by_regression(learned, query), learned.scale, rng.random((draws, 20)), query),
                10,
                query.elsewhere,
            )
            for query in queries
        ],
        axis=0,
    )
    assert known.mean == pytest.approx(drawn.mean(axis=0), abs=0.03)
    open_pairs = 0
    for a, b in PAIRS:
        share = (drawn[:, a] > drawn[:, b]).mean()
        assert known.above[a, b] == pytest.approx(share, abs=0.06)
        assert known.above[a, b] == pytest.approx(1 - known.above[b, a])
        open_pairs += 0.05 < share < 0.95
    assert open_pairs
    assert np.diag(known.above).tolist() == [0.5] * 4


@pytest.mark.parametrize("labels", [2, 4])
def test_the_expected_best_ranking_equals_a_sum_over_all_labels(labels: int) -> None:
    passages = 14
    queries = [
        drawn_query(np.random.default_rng([2, at]), f"q{at}", passages=passages, labels=labels)
        for at in range(4)
    ]
    queries = [
        query.hiding(np.isin(np.arange(passages), query.ranks[0, :open_ranks]))
        for query, open_ranks in zip(queries, (5, 3, 1, 0), strict=True)
    ]
    queries[1] = replace(queries[1], elsewhere=np.array([1.0, 1.0]))
    learned = fit(queries, neighbours=False)
    known, k = standing(learned, queries, 5), 5
    scale = learned.scale
    discounts = 1 / np.log2(np.arange(k) + 2)
    for query, shares in zip(queries, known.shares, strict=True):
        p = -np.diff(
            np.vstack([np.ones(passages), by_regression(learned, query), np.zeros(passages)]), axis=0
        )
        rows, best = np.flatnonzero(~query.judged), 0.0
        for places in itertools.product(range(len(scale)), repeat=len(rows)):
            weight = math.prod(p[place, row] for place, row in zip(places, rows, strict=True))
            whole = query.judgments.copy()
            whole[rows] = scale[list(places)]
            best += weight * (np.sort(np.append(whole, query.elsewhere))[::-1][:k] @ discounts)
        for number, row in enumerate(query.ranks):
            for rank, at in enumerate(row.tolist()):
                expected = discounts[rank] / best if rank < k else 0
                assert shares[number, at] == pytest.approx(expected)


@pytest.mark.usefixtures("independent")
def test_variances_include_labels_and_fits_without_one_group_of_queries_each() -> None:
    queries = drawn_track(3, 9, known=0.4, passages=20, depth=15)
    learned = fit(queries, neighbours=False)
    known = standing(learned, queries, 10)
    scale = learned.scale

    def gains(p: np.ndarray, query: QueryPassages) -> np.ndarray:
        of_label = -np.diff(np.vstack([np.ones(20), p, np.zeros(20)]), axis=0)
        return np.where(query.judged, query.judgments, scale @ of_label)

    means = []
    for group in range(8):
        kept = [query for at, query in enumerate(queries) if at % 8 != group]
        fitted = fit_regression(kept, learned.for_runs.columns, scale, by_query=True)
        means.append(
            np.mean(
                [
                    of @ gains(fitted.probabilities(query), query)
                    for of, query in zip(known.shares, queries, strict=True)
                ],
                axis=0,
            )
        )
    off = np.array(means) - np.mean(means, axis=0)
    assert known.model == pytest.approx(7 / 8 * off.T @ off)
    for query, spread in zip(queries, known.spreads, strict=True):
        p = by_regression(learned, query)
        of_label = -np.diff(np.vstack([np.ones(20), p, np.zeros(20)]), axis=0)
        variance = scale**2 @ of_label - (scale @ of_label) ** 2
        assert spread == pytest.approx(np.sqrt(np.maximum(variance, 0)))
        assert not spread[query.judged].any()
    assert known.judged == sum(query.judged.sum() for query in queries)
    # With uncertain ideal rankings, scores vary more than sums of labels.
    alone = sum((of * spread**2) @ of.T for of, spread in zip(known.shares, known.spreads, strict=True)) / 81
    assert (np.linalg.eigvalsh(known.labels - alone) > -1e-12).all()
    assert (np.diag(known.labels) > np.diag(alone)).all()


def test_correlated_labels_within_a_query_make_orders_less_certain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In each query, the passages that only run 0 has are all relevant or all not."""
    queries = []
    for at, query in enumerate(drawn_track(4, 12, labels=2)):
        ranks = np.array([range(10), range(10, 20)] * 2, np.int32)
        labels = np.where(np.arange(40) < 10, at % 2, np.arange(40) % 2).astype(float)
        hidden = np.arange(40) % 4 == 1
        query = replace(query, ranks=ranks, judgments=labels, features=np.zeros((40, 5)))
        queries.append(query.hiding(hidden))
    learned = fit(queries, neighbours=False)
    together = standing(learned, queries, 10)
    monkeypatch.setattr(settling, "_overdispersion", lambda *_: 1.0)
    apart = standing(learned, queries, 10)
    assert together.labels / apart.labels == pytest.approx(together.labels[0, 0] / apart.labels[0, 0])
    assert together.labels[0, 0] > 1.5 * apart.labels[0, 0]


def test_draws_have_the_given_means_and_covariances_and_are_reproducible() -> None:
    known = made()
    drawn = known.draw(40_000)
    assert drawn.mean(axis=0) == pytest.approx(known.mean, abs=0.01)
    assert np.cov(drawn.T) == pytest.approx(known.covariance, abs=0.01)
    np.testing.assert_allclose(known.draw(9), known.draw(9), atol=1e-9)
    assert np.abs(known.draw(9) - known.draw(9, seed=1)).max() > 1e-3


def of_pair(known: Standing, pair: tuple[int, int], spreads: Sequence[np.ndarray]) -> float:
    """The variance of a pair's difference due to labels, with these spreads."""
    a, b = pair
    return (
        sum(
            float((of[a, at] - of[b, at]) ** 2 * spread[at] ** 2)
            for of, spread in zip(known.shares, spreads, strict=True)
            for at in range(len(spread))
        )
        / len(known.shares) ** 2
    )


def test_the_gain_of_a_judgment_for_a_pair_is_the_variance_it_removes() -> None:
    known = made()
    total = of_pair(known, (0, 2), known.spreads)
    assert total == pytest.approx(known.labels[0, 0] + known.labels[2, 2] - 2 * known.labels[0, 2])
    gains = known.gains([(0, 2)])
    taken_off = []
    for query, spread in enumerate(known.spreads):
        of_query = []
        for at in range(len(spread)):
            judged = [of.copy() for of in known.spreads]
            judged[query][at] = 0
            of_query.append(total - of_pair(known, (0, 2), judged))
        taken_off.append(np.array(of_query))
    times = gains[0].sum() / taken_off[0].sum()
    for of, by_hand in zip(gains, taken_off, strict=True):
        assert of == pytest.approx(times * by_hand, abs=1e-12)
    p = known.above[0, 2]
    variance = total + known.model[0, 0] + known.model[2, 2] - 2 * known.model[0, 2]
    assert times == pytest.approx(p * (1 - p) / variance * len(known.shares) ** 2)


def test_for_several_pairs_the_gain_of_a_judgment_is_the_sum_over_pairs() -> None:
    known = made(seed=3)
    alone = [known.gains([pair]) for pair in PAIRS]
    for query, of in enumerate(known.gains(PAIRS)):
        assert of == pytest.approx(sum(of_pair[query] for of_pair in alone))
    assert known.gains([(2, 0)])[1] == pytest.approx(known.gains([(0, 2)])[1])


def needed_by_hand(known: Standing, pair: tuple[int, int], confidence: float) -> int:
    """Judges one passage after the other, always the one that removes most variance.

    The model error decreases with the square of the judged weight.
    """
    spreads = [of.copy() for of in known.spreads]
    a, b = pair
    model = known.model[a, a] + known.model[b, b] - 2 * known.model[a, b]
    weights = [
        np.where(spread > 0, abs(of[a] - of[b]), 0) for of, spread in zip(known.shares, spreads, strict=True)
    ]
    every = [(query, at) for query, of in enumerate(spreads) for at in range(len(of))]
    every.sort(key=lambda key: -weights[key[0]][key[1]] * known.spreads[key[0]][key[1]])
    left = total = sum(of.sum() for of in weights)
    for n in range(len(every) + 1):
        variance = of_pair(known, pair, spreads) + model * (left / total) ** 2
        if (
            variance < 1e-15
            or norm.cdf(abs(known.mean[a] - known.mean[b]) / math.sqrt(variance)) >= confidence
        ):
            return n
        query, at = every[n]
        spreads[query][at] = 0
        left -= weights[query][at]
    raise AssertionError


@pytest.mark.parametrize("times", [0, 1, 9])
def test_the_number_of_needed_judgments_equals_judging_one_by_one(times: int) -> None:
    numbers = set()
    for seed in range(3):
        known = made(seed=seed)
        known = replace(known, model=times * known.model)
        for pair in PAIRS:
            counts = [known.needed(pair, confidence) for confidence in (0.6, 0.8, 0.95, 0.999)]
            assert counts == [needed_by_hand(known, pair, c) for c in (0.6, 0.8, 0.95, 0.999)]
            assert counts == sorted(counts)
            assert known.needed(pair[::-1], 0.8) == counts[1]
            assert counts[2] >= without_model(known).needed(pair, 0.95)
            numbers |= set(counts)
    assert len(numbers) > 5


def test_pairs_are_undecided_while_the_other_order_is_probable() -> None:
    known = made(runs=5, seed=2)
    known = replace(known, mean=np.array([0.0, 2.0, 0.3, 1.2, 2.1]))
    order = sorted(range(5), key=lambda run: -known.mean[run])
    pairs = [pair for pair in itertools.combinations(order, 2) if known.above[pair] < 0.95]
    beside = [pair for pair in itertools.pairwise(order) if pair in pairs]
    assert undecided(known) == (len(beside), 4, len(pairs), 10)
    assert 0 < len(pairs) < 10


def test_if_all_passages_are_judged_orders_are_certain() -> None:
    queries = drawn_track(5, 4)
    known = standing(fit(queries), queries, 10)
    true = np.mean([drawn_ndcg(q.ranks, q.judgments[None], 10, q.elsewhere)[0] for q in queries], axis=0)
    assert known.mean == pytest.approx(true)
    assert not known.covariance.any()
    for a, b in PAIRS:
        assert known.above[a, b] == (true[a] > true[b])
        assert known.needed((a, b), 0.95) == 0
    assert not any(of.any() for of in known.gains(PAIRS))
    assert (known.draw(3) == known.mean).all()


@pytest.mark.parametrize("judged", [1, 2])
def test_a_few_judgments_of_one_query_are_enough(judged: int) -> None:
    first, *others = drawn_track(6, 5)
    labels = first.judgments
    kept = [0, *np.flatnonzero(labels != labels[0])[:judged]]
    few = [first.hiding(~np.isin(np.arange(40), kept)), *(query.hiding(query.judged) for query in others)]
    known = standing(fit(few), few, 10)
    assert undecided(known).pairs > 0
    assert np.isfinite(known.covariance).all()


def test_without_runs_no_pair_is_undecided() -> None:
    queries = [replace(query, ranks=query.ranks[:0]) for query in drawn_track(7, 3, known=0.5)]
    assert undecided(standing(fit(queries), queries, 10)) == (0, 0, 0, 0)
