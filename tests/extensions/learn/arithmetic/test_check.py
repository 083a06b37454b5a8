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
    most_retrieved,
    zeros,
)
from trecexam.extensions.learn.arithmetic.learning import Learned, by_regression, fit, predict
from trecexam.extensions.learn.arithmetic.passages import QueryPassages
from trecexam.extensions.learn.arithmetic.regression import expected
from trecexam.scores.rank_correlation import QueryDraws

WAYS = {"learned": expectations, "zero": zeros, "condensed": condensed, "labels": labels}


def most_voted(queries: Sequence[QueryPassages], k: int) -> list[QueryPassages]:
    """Only the k most voted passages of each query are judged."""
    return [query.hiding(np.argsort(np.argsort(query.features[:, 0])) >= k) for query in queries]


@pytest.mark.parametrize(
    ("queries", "by_votes"),
    [
        (drawn_track(1, 6), False),
        (drawn_track(1, 6, known=0.5), False),
        (drawn_track(1, 6, known=0.1), False),
        (most_voted(drawn_track(1, 6), 5), True),
        (most_voted(drawn_track(1, 6), 20), True),
        # Some queries are judged completely, as when judges go from one to the next.
        ([q if at % 2 else q.hiding(q.judged) for at, q in enumerate(drawn_track(1, 6))], False),
        # Judging only the least retrieved is not random, but the passages were not chosen by votes.
        ([q.hiding(q.features[:, 0] < 2.5) for q in drawn_track(1, 6)], False),
    ],
)
def test_the_judging_design_is_detected_from_votes(queries: list[QueryPassages], by_votes: bool) -> None:
    assert most_retrieved(queries) == by_votes


def test_for_a_random_sample_random_halves_are_hidden() -> None:
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


def test_for_the_most_retrieved_the_less_retrieved_half_is_hidden() -> None:
    queries = [*most_voted(drawn_track(4, 2), 5), *most_voted(drawn_track(5, 2), 1)]
    (repeat,) = hidings(queries)
    assert [int(hidden.sum()) for hidden in repeat] == [2, 2, 0, 0]
    for query, hidden in zip(queries[:2], repeat[:2], strict=True):
        votes = query.features[:, 0]
        assert votes[hidden].min() >= votes[query.judged & ~hidden].max()


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


def test_for_a_random_sample_the_loss_is_1_minus_tau_against_the_hidden_half() -> None:
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


def test_for_the_most_retrieved_the_loss_is_the_error_of_runs_relative_to_each_other() -> None:
    queries = most_voted(drawn_track(7, 6), 9)
    compared = compare(queries, WAYS, 2)
    (repeat,) = hidings(queries)
    seen = [query.hiding(hidden) for query, hidden in zip(queries, repeat, strict=True)]
    learned = fit(seen)
    for name in WAYS:
        off = np.zeros((4, 6))
        for at, (query, hidden, known) in enumerate(zip(queries, repeat, seen, strict=True)):
            gains = gains_of(known, learned)[name]
            best = sorted(np.nan_to_num(query.judgments), reverse=True)[:10]
            ideal = sum(label / math.log2(rank + 2) for rank, label in enumerate(best))
            for run, row in enumerate(query.ranks.tolist()):
                top = [(doc, 1 / math.log2(rank + 2)) for rank, doc in enumerate(row[:10])]
                of_known = [(known.judgments[doc], weight) for doc, weight in top if known.judged[doc]]
                mean = sum(g * w for g, w in of_known) / sum(w for _, w in of_known)
                off[run, at] = sum(
                    weight * (query.judgments[doc] - (mean if math.isnan(gains[doc]) else gains[doc]))
                    for doc, weight in top
                    if hidden[doc]
                ) / (ideal or 1)
        assert compared[name].loss == pytest.approx(off.mean(axis=1).std())
        # Subsets leave out the same queries for each method.
        subsets = QueryDraws().subset_means(off)
        assert compared[name].of_subsets == pytest.approx(subsets.std(axis=0))


def test_labels_of_unjudged_passages_do_not_count_in_the_loss_of_a_method() -> None:
    """A reference that gives these 0 would prefer zero, whatever is hidden."""
    queries = most_voted(drawn_track(9, 6), 8)

    def generous(seen: Sequence[QueryPassages], _: Learned) -> list[np.ndarray]:
        return [
            np.where(here.judged, here.judgments, np.where(all_of.judged, 0, 3))
            for here, all_of in zip(seen, queries, strict=True)
        ]

    compared = compare(queries, {"zero": zeros, "generous": generous}, 2)
    assert compared["generous"].loss == compared["zero"].loss > 0


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
