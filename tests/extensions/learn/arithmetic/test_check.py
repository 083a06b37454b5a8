"""Which method orders the runs best, using hidden judgments: against naive computations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from drawn_pools import drawn_track
from scipy.stats import kendalltau
from scipy.stats import t as student

from trecexam.extensions.learn.arithmetic.check import (
    Compared,
    Comparison,
    compare,
    condensed,
    design,
    expectations,
    hidings,
    labels,
    zeros,
)
from trecexam.extensions.learn.arithmetic.learning import Learned, by_regression, fit, predict
from trecexam.extensions.learn.arithmetic.passages import QueryPassages
from trecexam.extensions.learn.arithmetic.regression import expected
from trecexam.scores.rank_correlation.resampling import QueryDraws

WAYS = {"learned": expectations, "zero": zeros, "condensed": condensed, "labels": labels}


def most_retrieved(queries: Sequence[QueryPassages], k: int) -> list[QueryPassages]:
    """Only the k most voted passages of each query are judged."""
    return [query.hiding(np.argsort(np.argsort(query.features[:, 0])) >= k) for query in queries]


@pytest.mark.parametrize(
    ("queries", "kind"),
    [
        (drawn_track(1, 6), "all"),
        (drawn_track(1, 6, known=0.5), "random"),
        (drawn_track(1, 6, known=0.1), "random"),
        (most_retrieved(drawn_track(1, 6), 5), "most retrieved"),
        (most_retrieved(drawn_track(1, 6), 20), "most retrieved"),
        # Some queries are judged completely, as when judges go from one to the next.
        ([q if at % 2 else q.hiding(q.judged) for at, q in enumerate(drawn_track(1, 6))], "random"),
        # Judging only the least retrieved is not random, but the passages were not chosen by votes.
        ([q.hiding(q.features[:, 0] < 2.5) for q in drawn_track(1, 6)], "random"),
    ],
)
def test_the_judging_design_is_detected_from_votes(queries: list[QueryPassages], kind: str) -> None:
    assert design(queries)[0] == kind


def test_the_share_counts_pairs_in_which_the_judged_passage_is_retrieved_more() -> None:
    queries = drawn_track(2, 4, known=0.4)
    shares = []
    for query in queries:
        for judged in query.features[query.judged, 0]:
            shares += [
                1.0 if judged < other else 0.5 if judged == other else 0.0
                for other in query.features[~query.judged, 0]
            ]
    assert design(queries)[1] == pytest.approx(np.mean(shares))


def test_for_a_random_sample_random_halves_are_hidden() -> None:
    queries = drawn_track(3, 8, known=0.5)
    repeats = hidings(queries, "random")
    assert len(repeats) == 5
    every = [np.concatenate(repeat) for repeat in repeats]
    judged = np.concatenate([query.judged for query in queries])
    for hidden in every:
        assert not (hidden & ~judged).any()
        assert 0.35 < hidden.sum() / judged.sum() < 0.65
    assert len({tuple(hidden.tolist()) for hidden in every}) == 5
    again = hidings(queries, "random")
    assert [np.concatenate(repeat).tolist() for repeat in again] == [hidden.tolist() for hidden in every]


def test_for_the_most_retrieved_the_less_retrieved_half_is_hidden() -> None:
    queries = [*most_retrieved(drawn_track(4, 2), 5), *most_retrieved(drawn_track(5, 2), 1)]
    (repeat,) = hidings(queries, "most retrieved")
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
    repeats = hidings(queries, "random")
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
    for name, compared_way in compared.ways.items():
        assert compared_way.loss == pytest.approx(np.mean(losses[name]))
        assert (compared_way.counts == counts[name]).all()
    assert compared.hidden == np.mean([sum(map(np.sum, repeat)) for repeat in repeats])
    assert (compared.design, compared.n_queries) == ("random", 7)


def test_for_the_most_retrieved_the_loss_is_the_error_of_runs_relative_to_each_other() -> None:
    queries = most_retrieved(drawn_track(7, 6), 9)
    compared = compare(queries, WAYS, 2)
    (repeat,) = hidings(queries, "most retrieved")
    seen = [query.hiding(hidden) for query, hidden in zip(queries, repeat, strict=True)]
    learned = fit(seen)
    assert compared.design == "most retrieved"
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
        assert compared.ways[name].loss == pytest.approx(off.mean(axis=1).std())
        # Subsets leave out the same queries for each method.
        subsets = QueryDraws().subset_means(off)
        assert compared.ways[name].of_subsets == pytest.approx(subsets.std(axis=0))


def test_labels_of_unjudged_passages_do_not_count_in_the_loss_of_a_method() -> None:
    """A reference that gives these 0 would prefer zero, whatever is hidden."""
    queries = most_retrieved(drawn_track(9, 6), 8)

    def generous(seen: Sequence[QueryPassages], _: Learned) -> list[np.ndarray]:
        return [
            np.where(here.judged, here.judgments, np.where(all_of.judged, 0, 3))
            for here, all_of in zip(seen, queries, strict=True)
        ]

    compared = compare(queries, {"zero": zeros, "generous": generous}, 2)
    assert compared.ways["generous"].loss == compared.ways["zero"].loss > 0


def comparison(**losses: tuple[float, list[float]]) -> Comparison:
    ways = {
        name: Compared(loss, np.array(of_subsets), np.zeros((4, 2, 2), np.int64))
        for name, (loss, of_subsets) in losses.items()
    }
    return Comparison("random", ways, 9.0, QueryDraws(), 4)


def test_a_method_is_better_if_the_interval_of_the_difference_is_above_0() -> None:
    # A fifth of four queries is one, so there are four subsets, each without one of them.
    spread = [0.05, -0.05, 0.02, -0.02]
    half = student.ppf(0.975, 3) * math.sqrt((4 - 1) / 1) * np.std(spread)
    for difference, is_better in ((half + 0.01, True), (half - 0.01, False)):
        of = comparison(
            one=(0.1, [0.1] * 4), two=(0.1 + difference, [0.1 + difference + of for of in spread])
        )
        assert of.better("one", "two") == is_better
        assert not of.better("two", "one")


def test_the_default_method_stays_best_unless_another_is_significantly_better() -> None:
    of = comparison(
        first=(0.5, [0.5] * 4), near=(0.45, [0.9, 0.0, 0.5, 0.4]), a=(0.2, [0.2] * 4), b=(0.3, [0.3] * 4)
    )
    assert of.best("first", ["near", "b", "a"]) == "a"
    assert of.best("first", ["near", "b"]) == "b"
    assert of.best("first", ["near"]) == "first"
    assert replace(of, n_queries=1).best("first", ["a"]) == "first"
