"""The regressions, against scikit-learn on the same numbers."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from drawn_pools import drawn_track, unit, without_background
from sklearn.linear_model import LogisticRegression

from trecexam.extensions.learn.arithmetic.features import Lexical, fusion, query_features, unretrieved
from trecexam.extensions.learn.arithmetic.passages import FEATURES, QueryPassages
from trecexam.extensions.learn.arithmetic.process import (
    KERNELS,
    Kernel,
    carried,
    carried_from_others,
    choose_kernel,
    cosines,
)
from trecexam.extensions.learn.arithmetic.regression import (
    adds,
    choose_columns,
    expected,
    fit_regression,
    scale_of,
    unseen,
)

ALL, BINARY = (0, 1, 2), np.array([0.0, 1.0])


def standardised(queries: Sequence[QueryPassages], columns: Sequence[int]) -> list[np.ndarray]:
    """The columns of each query's passages, standardised over all passages of all queries."""
    every = np.vstack([query.features for query in queries])[:, list(columns)]
    return [(query.features[:, list(columns)] - every.mean(axis=0)) / every.std(axis=0) for query in queries]


def by_sklearn(queries: Sequence[QueryPassages], columns: Sequence[int], step: float, of: int) -> np.ndarray:
    """P(judged at least `step`) for each passage of query `of`, from all judged ones."""
    tables = standardised(queries, columns)
    known = [query.judged for query in queries]
    rows = np.vstack([table[rows] for table, rows in zip(tables, known, strict=True)])
    labels = np.concatenate([q.judgments[rows] for q, rows in zip(queries, known, strict=True)])
    return LogisticRegression(max_iter=1000).fit(rows, labels >= step).predict_proba(tables[of])[:, 1]


def test_each_step_equals_the_logistic_regression_of_scikit_learn() -> None:
    queries = list(map(without_background, drawn_track(1, 5, known=0.5)))
    fitted = fit_regression(queries, ALL, scale_of(queries))
    assert fitted.scale.tolist() == [0, 1, 2, 3]
    assert (fitted.weights[:, 0] < 0).all()
    for at in range(5):
        by_hand = [by_sklearn(queries, ALL, step, at) for step in (1, 2, 3)]
        falling = np.minimum.accumulate(by_hand, axis=0)
        assert fitted.probabilities(queries[at]) == pytest.approx(falling, abs=1e-3)


def test_a_step_that_would_increase_with_fewer_votes_is_fitted_without_votes() -> None:
    queries = list(map(without_background, drawn_track(2, 5, labels=2)))
    turned = []
    for query in queries:
        features = query.features.copy()
        features[:, 0] = features[:, 0].min() + features[:, 0].max() - features[:, 0]
        turned.append(replace(query, features=features))
    fitted, usual = fit_regression(turned, ALL, BINARY), fit_regression(queries, ALL, BINARY)
    assert usual.weights[0, 0] < 0
    assert fitted.weights[0, 0] == 0
    assert fitted.probabilities(turned[0])[0] == pytest.approx(by_sklearn(turned, (1, 2), 1, 0), abs=1e-3)


def test_the_background_of_each_query_counts_as_one_passage_with_the_lowest_label() -> None:
    queries = drawn_track(3, 4, known=0.3, labels=2)
    queries[1] = replace(queries[1], background=queries[1].background[:2])
    fitted = fit_regression(queries, ALL, BINARY)
    every = np.vstack([query.features for query in queries])[:, ALL]
    tables, labels, weights = [], [], []
    for query in queries:
        n, m = query.judged.sum(), len(query.background)
        tables += [query.features[query.judged][:, ALL], query.background[:, ALL]]
        labels += [query.judgments[query.judged], np.zeros(m)]
        weights += [np.ones(n), np.full(m, 1 / m)]
    rows = (np.vstack(tables) - every.mean(axis=0)) / every.std(axis=0)
    by_hand = LogisticRegression(max_iter=1000).fit(
        rows, np.concatenate(labels) >= 1, np.concatenate(weights)
    )
    assert fitted.weights == pytest.approx(by_hand.coef_, abs=1e-3)
    assert fitted.intercepts == pytest.approx(by_hand.intercept_, abs=1e-3)
    # It has an effect: without background, votes have less weight.
    bare = fit_regression(list(map(without_background, queries)), ALL, BINARY)
    assert bare.weights[0, 0] > fitted.weights[0, 0]


def test_each_query_has_its_own_intercept_under_the_same_penalty() -> None:
    queries = list(map(without_background, drawn_track(5, 4, known=0.6, labels=2)))
    high = queries[0].judgments
    queries[0] = replace(queries[0], judgments=np.where(np.arange(40) % 3, np.minimum(high + 1, 1), high))
    blank = queries[3].hiding(queries[3].judged)
    queries[3] = blank
    fitted = fit_regression(queries, ALL, BINARY, by_query=True)
    tables = standardised(queries, ALL)
    rows = np.vstack([table[query.judged] for table, query in zip(tables, queries, strict=True)])
    asked = np.concatenate([np.full(query.judged.sum(), at) for at, query in enumerate(queries)])
    labels = np.concatenate([query.judgments[query.judged] for query in queries])
    one_hot = (asked[:, None] == np.arange(3)).astype(float)
    by_hand = LogisticRegression(max_iter=1000).fit(np.hstack([rows, one_hot]), labels >= 1)
    for at, query in enumerate(queries):
        own = np.tile(np.eye(4)[at][:3], (40, 1))
        p = by_hand.predict_proba(np.hstack([tables[at], own]))[:, 1]
        assert fitted.probabilities(query)[0] == pytest.approx(p, abs=1e-3)
    assert fitted.of_queries["q00"] > max(fitted.of_queries["q01"], fitted.of_queries["q02"])
    assert "q03" not in fitted.of_queries


def test_a_step_without_positive_examples_has_no_probability() -> None:
    queries = drawn_track(6, 3, labels=2)
    fitted = fit_regression(queries, ALL, np.array([0.0, 1.0, 2.0]))
    p = fitted.probabilities(queries[0])
    assert p[1].max() < 1e-100
    assert p[0].max() > 0.5
    assert expected(p, np.array([0.0, 1.0, 3.0])) == pytest.approx(p[0])


@pytest.mark.parametrize("known", [1.0, 0.4])
def test_a_query_is_predicted_without_its_own_judgments(known: float) -> None:
    queries = drawn_track(9, 7, known=known)
    scale = scale_of(queries)
    found = unseen(queries, ALL, scale)
    for fold in range(5):
        left = [query for at, query in enumerate(queries) if at % 5 != fold]
        fitted = fit_regression(left, ALL, scale)
        for at in range(fold, 7, 5):
            assert (found[at] == fitted.probabilities(queries[at])).all()


def naive_likelihood(queries: Sequence[QueryPassages], columns: Sequence[int]) -> np.ndarray:
    sums = []
    for at, query in enumerate(queries):
        left = [other for number, other in enumerate(queries) if number % 5 != at % 5]
        p = fit_regression(left, columns, np.arange(4.0)).probabilities(query)
        total = 0.0
        for step, row in itertools.product((1, 2, 3), np.flatnonzero(query.judged)):
            reached = min(max(float(p[step - 1, row]), 1e-4), 1 - 1e-4)
            total += np.log(reached if query.judgments[row] >= step else 1 - reached)
        sums.append(total)
    return np.array(sums)


@pytest.mark.slow
def test_a_feature_is_added_if_it_improves_by_more_than_one_standard_error() -> None:
    """Words make passages relevant in these pools; ratings do in some, where they are given."""
    chosen = set()
    for seed, told in itertools.product(range(3), (0.0, 0.6)):
        queries = []
        for query in drawn_track(20 + seed, 10, known=0.25):
            ratings = np.random.default_rng(seed).normal(size=40) + told * np.nan_to_num(query.judgments)
            features = np.column_stack([query.features[:, :4], ratings])
            queries.append(replace(query, features=features))
        columns: tuple[int, ...] = ALL
        for more in (3, 4):
            gained = naive_likelihood(queries, (*columns, more)) - naive_likelihood(queries, columns)
            if gained.sum() > gained.std(ddof=1) * np.sqrt(len(queries)):
                columns = (*columns, more)
        assert choose_columns(queries, np.arange(4.0))[0] == columns
        chosen.add(columns)
    assert len(chosen) > 1
    nothing = [replace(query, features=query.features * (np.arange(5) != 3)) for query in queries]
    assert FEATURES.index("lexical") not in choose_columns(nothing, np.arange(4.0))[0]


def test_a_single_query_gives_no_evidence_on_other_queries() -> None:
    assert not adds(np.array([9.0]))
    assert not adds(np.array([3.0, -1.0]))
    assert adds(np.array([3.0, 2.0]))


# The Gaussian process and the features, against explicit computations.


def covariance(kernel: Kernel, a: np.ndarray, b: np.ndarray) -> float:
    cosine = float(a.astype(float) @ b.astype(float))
    return kernel.constant + math.exp((cosine - 1) / kernel.length)


def naive(kernel: Kernel, judged: np.ndarray, residuals: np.ndarray, passage: np.ndarray) -> float:
    """The mean of a passage's residual given the others'."""
    among = np.array([[covariance(kernel, a, b) for b in judged] for a in judged])
    across = np.array([covariance(kernel, a, passage) for a in judged])
    return float(across @ np.linalg.inv(among + kernel.noise * np.eye(len(judged))) @ residuals)


@pytest.mark.parametrize("n", [1, 5])
def test_the_residual_of_a_passage_equals_the_joint_normal_solution(n: int) -> None:
    rng = np.random.default_rng(4)
    kernel = Kernel(0.2, 0.4, 0.5)
    judged, passages, residuals = unit(rng, n), unit(rng, 3), rng.normal(size=n)
    # Passages without text have no vector.
    passages[2] = 0
    shares = carried(kernel, judged, passages)
    assert shares.shape == (3, n)
    by_hand = [naive(kernel, judged, residuals, passage) for passage in passages]
    assert shares @ residuals == pytest.approx(by_hand, abs=1e-6)


@pytest.mark.parametrize("n", [1, 2, 8])
def test_leaving_one_out_equals_the_process_of_all_others(n: int) -> None:
    rng = np.random.default_rng(6)
    kernel = Kernel(0.1, 0.3, 0.3)
    vectors, residuals = unit(rng, n), rng.normal(size=n)
    by_hand = [
        naive(kernel, np.delete(vectors, at, 0), np.delete(residuals, at), vectors[at]) if n > 1 else 0
        for at in range(n)
    ]
    assert carried_from_others(kernel, vectors, residuals) == pytest.approx(by_hand, abs=1e-6)


@pytest.mark.parametrize("truth", [Kernel(0.3, 0.5, 0.3), Kernel(0.03, 0.1, 10.0)])
def test_the_chosen_kernel_maximises_the_likelihood_over_variances(truth: Kernel) -> None:
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(7)
    queries = []
    for _ in range(6):
        vectors = unit(rng, 20)
        queries.append(
            (vectors, rng.multivariate_normal(np.zeros(20), 2 * truth.judged(cosines(vectors, vectors))))
        )

    def likelihood(kernel: Kernel) -> float:
        judged = [(kernel.judged(cosines(v, v)), r) for v, r in queries]
        fit = sum(r @ np.linalg.inv(covariance) @ r for covariance, r in judged) / 120
        best, *others = (
            sum(multivariate_normal.logpdf(r, cov=times * fit * covariance) for covariance, r in judged)
            for times in (1, 0.95, 1.05)
        )
        assert best > max(others)
        return float(best)

    assert choose_kernel(queries) == max(KERNELS, key=likelihood)


# Features of a passage before it is judged, against naive computations.


def test_fusion_is_the_rank_by_reciprocal_rank_sums_with_mean_ranks_for_ties() -> None:
    ranks = np.array([[0, 1, 2, 3], [1, 0, 3, -1], [2, -1, -1, -1]], np.int32)
    sums = [1 / 61 + 1 / 62, 1 / 62 + 1 / 61, 1 / 63 + 1 / 61, 1 / 64 + 1 / 63, 0.0, 0.0]
    places = [1.5, 1.5, 3, 4, 5.5, 5.5]
    assert sorted(sums, reverse=True)[2] == sums[2]
    assert fusion(ranks, 6) == pytest.approx(np.log1p(places))
    # Passages without votes are behind all others.
    assert unretrieved(6) == pytest.approx(math.log(1 + 7))


def naive_bm25(query: str, text: str, collection: list[str]) -> float:
    def words(of: str) -> list[str]:
        return re.findall(r"[a-zà-ü0-9]+", of.lower())

    lengths = [len(words(of)) for of in collection]
    mean, total = sum(lengths) / len(lengths), 0.0
    counts = Counter(words(text))
    for word in words(query):
        found = sum(word in words(of) for of in collection)
        if found and counts[word]:
            idf = math.log(1 + (len(collection) - found + 0.5) / (found + 0.5))
            norm = counts[word] + 1.2 * (1 - 0.75 + 0.75 * len(words(text)) / mean)
            total += idf * counts[word] * 2.2 / norm
    return total


def test_shared_words_of_query_and_passage_are_scored_as_bm25_of_the_collection() -> None:
    texts = ["The heat pump, the PUMP.", "Überall Wärme; heat?", "under_score of pumps", "nothing", ""]
    lexical = Lexical(texts)
    for query in ("heat pump", "Pump pump score", "überall", "", "unknown"):
        expected = [naive_bm25(query, text.replace("_", " "), texts) for text in texts]
        assert lexical.scores(query, texts) == pytest.approx(expected)
    assert lexical.scores("heat", ["heat, elsewhere"]).tolist() == [0]
    assert Lexical([]).scores("heat", ["heat"]).tolist() == [0]


def test_features_equal_their_definitions_over_the_pool() -> None:
    rng = np.random.default_rng(2)
    n, others = 12, 4
    question, passages = unit(rng, 1)[0], unit(rng, n + others)
    ranks = np.array([rng.permutation(n) for _ in range(3)], np.int32)
    lengths, words = rng.integers(1, 500, n + others), rng.random(n + others)
    lengths[[3, n]] = 0
    ratings, has_text = np.where(rng.random(n) < 0.6, rng.integers(0, 6, n), np.nan), lengths > 0
    texts = ["x" * length for length in lengths]
    pooled, background = query_features(ranks, question, passages, texts, words, ratings)
    raw = {
        "cosine": np.where(has_text, passages @ question, np.nan),
        "length": np.where(has_text, [math.log(1 + length) for length in lengths], np.nan),
        "lexical": np.where(has_text, words, np.nan),
        "rating": np.append(ratings, np.full(others, np.nan)),
    }
    for at, name in enumerate(FEATURES):
        if name == "fusion":
            assert pooled[:, at].tolist() == fusion(ranks, n).tolist()
            assert set(background[:, at]) == {unretrieved(n)}
            continue
        known = raw[name][:n][~np.isnan(raw[name][:n])]
        standard = np.nan_to_num((raw[name] - np.mean(known)) / np.std(known))
        assert np.append(pooled[:, at], background[:, at]) == pytest.approx(standard, abs=1e-5)
