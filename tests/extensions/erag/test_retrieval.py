"""Scores of ranked lists with labels in 0..1: brute force, edge cases, and undefined measures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.erag.evaluation import query_correlations
from trecexam.extensions.erag.retrieval import FRACTIONAL, is_binary, measure_values, measures_of
from trecexam.scores.values import MeasureValues

DOCS = [f"d{n}" for n in range(7)]
BASES = ("P", "Success", "nDCG", "R", "AP", "RR")
rankings = st.lists(st.sampled_from(DOCS), unique=True, max_size=7)
binary = st.dictionaries(st.sampled_from(DOCS), st.sampled_from([0.0, 1.0]))
fractions = st.dictionaries(st.sampled_from(DOCS), st.sampled_from([0.0, 0.25, 1 / 3, 0.7, 1.0]), min_size=1)


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


@given(
    st.one_of(st.just([{}, {}]), *(st.lists(each, min_size=2, max_size=2) for each in (binary, fractions))),
    st.lists(rankings, min_size=2, max_size=2),
    st.sampled_from([1, 2, 3, 5, 9]),
)
def test_values_are_the_definitions(labels: list[dict[str, float]], lists: list[list[str]], k: int) -> None:
    by_pair = {(f"q{n}", doc_id): label for n, of in enumerate(labels) for doc_id, label in of.items()}
    # With fractions, three measures are defined.
    bases = BASES if is_binary(by_pair) else FRACTIONAL
    query_ids, ranked = ["q0", "q1", "skipped"], {f"q{n}": ranking for n, ranking in enumerate(lists)}
    found = measure_values(by_pair, measures_of(f"{base}@{k}" for base in bases), query_ids, {"run": ranked})
    for base in bases:
        values = found.matrix(f"{base}@{k}")[0].tolist()
        expected = [brute(base, k, ranking, of) for ranking, of in zip(lists, labels, strict=True)]
        assert values == pytest.approx([*expected, 0], abs=1e-6)


def correlation(ours: dict[str, float], theirs: dict[str, float]) -> tuple[Any, ...]:
    """The number of queries, tau and rho of one run."""
    values = MeasureValues(("run",), tuple(ours), ("AP",), np.array([list(ours.values())])[:, :, None])
    (found,) = query_correlations(values, {("run", query_id): theirs[query_id] for query_id in theirs}).rows
    return found[2:]


def test_correlation_over_queries_uses_queries_with_both_scores() -> None:
    ours = {"q1": 0.1, "q2": 0.3, "q3": 0.3, "q4": 0.9, "q5": 0.5}
    theirs = {"q1": 1.0, "q2": 0.0, "q3": 3.0, "q4": 4.0, "q9": 7.0}
    n_queries, tau, rho = correlation(ours, theirs)
    pairs = [(a, b) for a in ("q1", "q2", "q3", "q4") for b in ("q1", "q2", "q3", "q4") if a < b]
    signs = [
        ((ours[a] > ours[b]) - (ours[a] < ours[b]), (theirs[a] > theirs[b]) - (theirs[a] < theirs[b]))
        for a, b in pairs
    ]
    untied = [sum(bool(sign[side]) for sign in signs) for side in (0, 1)]
    assert n_queries == 4
    assert tau == pytest.approx(sum(x * y for x, y in signs) / math.sqrt(untied[0] * untied[1]))
    ranks = ([1, 2.5, 2.5, 4], [2, 1, 3, 4])
    mean = 2.5
    over = sum((x - mean) * (y - mean) for x, y in zip(*ranks, strict=True))
    under = math.sqrt(math.prod(sum((x - mean) ** 2 for x in side) for side in ranks))
    assert rho == pytest.approx(over / under)


def test_an_undefined_correlation_is_empty() -> None:
    for ours, theirs in (
        ({"q1": 0.5, "q2": 0.5}, {"q1": 1.0, "q2": 2.0}),
        ({"q1": 0.5, "q2": 0.6}, {"q1": 1.0, "q2": 1.0}),
        ({"q1": 0.5}, {"q1": 1.0}),
        ({"q1": 0.5}, {"q9": 1.0}),
    ):
        assert correlation(ours, theirs)[1:] == (None, None)
