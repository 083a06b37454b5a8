"""The Gaussian process and the features, against explicit computations."""

from __future__ import annotations

import math
import re
from collections import Counter

import numpy as np
import pytest
from drawn_pools import unit

from trecexam.extensions.learn.arithmetic.features import Lexical, fusion, query_features, unretrieved
from trecexam.extensions.learn.arithmetic.passages import FEATURES
from trecexam.extensions.learn.arithmetic.process import (
    KERNELS,
    Kernel,
    carried,
    carried_from_others,
    choose_kernel,
    cosines,
)


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


def test_of_a_query_with_many_judgments_64_evenly_spread_ones_are_used() -> None:
    rng = np.random.default_rng(8)
    vectors = unit(rng, 200)
    residuals = rng.multivariate_normal(
        np.zeros(200), Kernel(0.1, 0.3, 0.3).judged(cosines(vectors, vectors))
    )
    rows = np.linspace(0, 199, 64).astype(int)
    others = np.setdiff1d(np.arange(200), rows)
    noisy = residuals.copy()
    noisy[others] = 50 * rng.normal(size=len(others))
    assert choose_kernel([(vectors, noisy)]) == choose_kernel([(vectors[rows], residuals[rows])])
    assert choose_kernel([(vectors[others], noisy[others])]) != choose_kernel([(vectors, noisy)])


def test_without_residuals_to_explain_a_kernel_is_still_chosen() -> None:
    assert choose_kernel([(unit(np.random.default_rng(9), 5), np.zeros(5))]) in KERNELS


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
