"""Scores of ranked lists with labels in 0..1: brute force, edge cases, and undefined measures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.erag.end_to_end import QueryCorrelation, query_correlations
from trecexam.extensions.erag.retrieval import FRACTIONAL, measure_values, measures_of
from trecexam.scores.values import MeasureValues

DOCS = [f"d{n}" for n in range(7)]
BASES = ("P", "R", "AP", "RR", "nDCG", "Success")
cut = st.sampled_from([1, 2, 3, 5, 9])
rankings = st.lists(st.sampled_from(DOCS), unique=True, max_size=7)
binary = st.dictionaries(st.sampled_from(DOCS), st.sampled_from([0.0, 1.0]))
fractions = st.dictionaries(st.sampled_from(DOCS), st.sampled_from([0.0, 0.25, 1 / 3, 0.7, 1.0]), min_size=1)


Values = dict[str, dict[str, float]]


def values_of(
    labels: dict[str, dict[str, float]], names: list[str], query_ids: list[str], lists: dict[str, list[str]]
) -> Values:
    """query_id -> measure -> value, of one run."""
    found = measure_values(labels, measures_of(names), query_ids, {"run": lists})
    rows = found.array[0].tolist()
    return {q: dict(zip(found.measures, row, strict=True)) for q, row in zip(query_ids, rows, strict=True)}


def brute(base: str, k: int, ranking: list[str], labels: dict[str, float]) -> float:
    """The definitions, word for word; of AP and RR for labels of 0 and 1."""
    gains = [labels.get(doc_id, 0.0) for doc_id in ranking[:k]]
    if base == "P":
        return sum(gains) / k
    if base == "Success":
        return max([0.0, *gains])
    if base == "R":
        return sum(gains) / sum(labels.values()) if sum(labels.values()) else 0.0
    if base == "RR":
        return next((1 / rank for rank, gain in enumerate(gains, 1) if gain), 0.0)
    if base == "AP":
        hits = [sum(gains[:rank]) / rank for rank, gain in enumerate(gains, 1) if gain]
        return sum(hits) / sum(labels.values()) if hits else 0.0
    best = sorted(labels.values(), reverse=True)[:k]
    ideal = sum(gain / math.log2(rank + 1) for rank, gain in enumerate(best, 1))
    found = sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
    return found / ideal if ideal else 0.0


@given(rankings, binary, rankings, binary, cut)
def test_labels_of_0_and_1_give_the_usual_measures(
    one: list[str], labels: dict[str, float], two: list[str], others: dict[str, float], k: int
) -> None:
    measures = [f"{base}@{k}" for base in BASES]
    found = values_of({"q1": labels, "q2": others}, measures, ["q1", "q2", "q3"], {"q1": one, "q2": two})
    for query_id, ranking, its in (("q1", one, labels), ("q2", two, others), ("q3", [], {})):
        for base in BASES:
            assert found[query_id][f"{base}@{k}"] == pytest.approx(brute(base, k, ranking, its), abs=1e-6)


@given(rankings, fractions, cut)
def test_fractions_give_the_mean_the_maximum_and_the_gain(
    ranking: list[str], labels: dict[str, float], k: int
) -> None:
    # One fraction makes all labels fractions.
    every = {"q1": labels, "other": {"x": 0.5}}
    found = values_of(every, [f"{base}@{k}" for base in FRACTIONAL], ["q1", "other"], {"q1": ranking})
    for base in FRACTIONAL:
        assert found["q1"][f"{base}@{k}"] == pytest.approx(brute(base, k, ranking, labels), abs=1e-12)
        # The run has no list for this query.
        assert found["other"][f"{base}@{k}"] == 0


def correlation(ours: dict[str, float], theirs: dict[str, float]) -> QueryCorrelation:
    values = MeasureValues(("run",), tuple(ours), ("AP",), np.array([list(ours.values())])[:, :, None])
    (found,) = query_correlations(values, {"run": theirs})
    return found


def test_correlation_over_queries_uses_queries_with_both_scores() -> None:
    ours = {"q1": 0.1, "q2": 0.3, "q3": 0.3, "q4": 0.9, "q5": 0.5}
    theirs = {"q1": 1.0, "q2": 0.0, "q3": 3.0, "q4": 4.0, "q9": 7.0}
    found = correlation(ours, theirs)
    pairs = [(a, b) for a in ("q1", "q2", "q3", "q4") for b in ("q1", "q2", "q3", "q4") if a < b]
    signs = [
        ((ours[a] > ours[b]) - (ours[a] < ours[b]), (theirs[a] > theirs[b]) - (theirs[a] < theirs[b]))
        for a, b in pairs
    ]
    untied = [sum(bool(sign[side]) for sign in signs) for side in (0, 1)]
    assert found.n_queries == 4
    assert found.kendall_tau == pytest.approx(sum(x * y for x, y in signs) / math.sqrt(untied[0] * untied[1]))
    ranks = ([1, 2.5, 2.5, 4], [2, 1, 3, 4])
    mean = 2.5
    over = sum((x - mean) * (y - mean) for x, y in zip(*ranks, strict=True))
    under = math.sqrt(math.prod(sum((x - mean) ** 2 for x in side) for side in ranks))
    assert found.spearman_rho == pytest.approx(over / under)


def test_an_undefined_correlation_is_empty() -> None:
    for ours, theirs in (
        ({"q1": 0.5, "q2": 0.5}, {"q1": 1.0, "q2": 2.0}),
        ({"q1": 0.5, "q2": 0.6}, {"q1": 1.0, "q2": 1.0}),
        ({"q1": 0.5}, {"q1": 1.0}),
        ({"q1": 0.5}, {}),
    ):
        found = correlation(ours, theirs)
        assert (found.kendall_tau, found.spearman_rho) == (None, None)
