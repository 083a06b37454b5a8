"""Which method orders the runs best, using hidden judgments: against naive computations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from drawn_pools import drawn_track
from scipy.stats import kendalltau
from scipy.stats import t as student

from trecexam.extensions.learn.arithmetic.check import (
    Compared,
    best,
    compare,
    condensed,
    expectations,
    hidings,
    labels,
    zeros,
)
from trecexam.extensions.learn.arithmetic.learning import Learned, by_regression, fit, predict
from trecexam.extensions.learn.arithmetic.passages import QueryPassages
from trecexam.extensions.learn.arithmetic.regression import expected

WAYS = {"learned": expectations, "zero": zeros, "condensed": condensed, "labels": labels}


def test_random_halves_are_hidden() -> None:
    queries = drawn_track(3, 8, known=0.5)
    repeats = hidings(queries)
    assert len(repeats) == 5
    every = [np.concatenate(repeat) for repeat in repeats]
    judged = np.concatenate([query.judged for query in queries])
    for hidden in every:
        assert not (hidden & ~judged).any()
        assert 0.35 < hidden.sum() / judged.sum() < 0.65
    assert len({tuple(hidden.tolist()) for hidden in every}) == 5
    again = hidings(queries)
    assert [np.concatenate(repeat).tolist() for repeat in again] == [hidden.tolist() for hidden in every]


def naive_board(queries: Sequence[QueryPassages], gains: Sequence[np.ndarray]) -> np.ndarray:
    """The mean of nDCG@10 of each run; NaN leaves a passage out."""
    values = np.zeros((4, len(queries)))
    for at, (query, of) in enumerate(zip(queries, gains, strict=True)):
        best = sorted((gain for gain in of.tolist() if not math.isnan(gain)), reverse=True)[:10]
        ideal = sum(gain / math.log2(rank + 2) for rank, gain in enumerate(best))
        for run, row in enumerate(query.ranks.tolist()):
            found = [of[doc] for doc in row if doc >= 0 and not math.isnan(of[doc])][:10]
            dcg = sum(gain / math.log2(rank + 2) for rank, gain in enumerate(found))
            values[run, at] = dcg / ideal if ideal else 0
    return values.mean(axis=1)


def gains_of(query: QueryPassages, learned: Learned) -> dict[str, np.ndarray]:
    return {
        "learned": expected(by_regression(learned, query), learned.scale),
        "zero": np.where(query.judged, query.judgments, 0),
        "condensed": query.judgments,
        "labels": predict(learned, query).labels,
    }


def test_the_loss_is_1_minus_tau_against_the_hidden_half() -> None:
    queries = drawn_track(6, 7, known=0.5, labels=2)
    compared = compare(queries, WAYS, 1)
    losses: dict[str, list[float]] = {name: [] for name in WAYS}
    counts = {name: np.zeros((7, 2, 2), int) for name in WAYS}
    repeats = hidings(queries)
    for repeat in repeats:
        seen = [query.hiding(hidden) for query, hidden in zip(queries, repeat, strict=True)]
        learned = fit(seen)
        of_ways = [gains_of(query, learned) for query in seen]
        truth = np.zeros(4)
        for query, hidden in zip(queries, repeat, strict=True):
            for run, row in enumerate(query.ranks.tolist()):
                truth[run] += sum(
                    query.judgments[doc] / math.log2(rank + 2)
                    for rank, doc in enumerate(row[:10])
                    if hidden[doc]
                )
        for name in WAYS:
            board = naive_board(seen, [of[name] for of in of_ways])
            losses[name].append(1 - kendalltau(board, truth).statistic)
            for at, hidden in enumerate(repeat):
                for doc in np.flatnonzero(hidden):
                    high = queries[at].judgments[doc] >= 1, of_ways[at][name][doc] >= 1
                    counts[name][at, int(high[0]), int(high[1])] += 1
    for name, compared_way in compared.items():
        assert compared_way.loss == pytest.approx(np.mean(losses[name]))
        assert (compared_way.counts == counts[name]).all()


def test_labels_of_unjudged_passages_do_not_count_in_the_loss_of_a_method() -> None:
    """A reference that gives these 0 would prefer zero, whatever is hidden."""
    queries = drawn_track(9, 6, known=0.3)

    def generous(seen: Sequence[QueryPassages], _: Learned) -> list[np.ndarray]:
        return [
            np.where(here.judged, here.judgments, np.where(all_of.judged, np.nan, 3))
            for here, all_of in zip(seen, queries, strict=True)
        ]

    def truth(seen: Sequence[QueryPassages], _: Learned) -> list[np.ndarray]:
        return [np.where(all_of.judged, all_of.judgments, 0) for all_of in queries]

    compared = compare(queries, {"generous": generous, "truth": truth}, 2)
    assert compared["truth"].loss < compared["generous"].loss
    agreed = compared["truth"].counts.sum(axis=0)
    assert agreed[0, 1] == agreed[1, 0] == 0


def of(loss: float, of_subsets: Sequence[float], n_queries: int = 4) -> Compared:
    return Compared(loss, np.array(of_subsets), np.zeros((n_queries, 2, 2), np.int64))


def test_a_method_is_better_if_the_interval_of_the_difference_is_above_0() -> None:
    # A fifth of four queries is one, so there are four subsets, each without one of them.
    spread = [0.05, -0.05, 0.02, -0.02]
    half = student.ppf(0.975, 3) * math.sqrt((4 - 1) / 1) * np.std(spread)
    for difference, is_better in ((half + 0.01, True), (half - 0.01, False)):
        one, two = of(0.1, [0.1] * 4), of(0.1 + difference, [0.1 + difference + of for of in spread])
        assert one.better_than(two) == is_better
        assert not two.better_than(one)


def test_the_default_method_stays_best_unless_another_is_significantly_better() -> None:
    ways = {"first": of(0.5, [0.5] * 4), "near": of(0.45, [0.9, 0.0, 0.5, 0.4])}
    assert best(ways, "first") == "first"
    assert best({**ways, "b": of(0.3, [0.3] * 4)}, "first") == "b"
    assert best({**ways, "b": of(0.3, [0.3] * 4), "a": of(0.2, [0.2] * 4)}, "first") == "a"
    single = {"first": of(0.5, [0.5] * 4, 1), "a": of(0.2, [0.2] * 4, 1)}
    assert best(single, "first") == "first"
