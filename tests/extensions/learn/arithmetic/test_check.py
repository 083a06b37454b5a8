"""Which method orders the runs best, using hidden judgments: against naive computations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from drawn_pools import drawn_query, drawn_track
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
from trecexam.extensions.learn.arithmetic.scores import (
    drawn_ap,
    drawn_labels,
    drawn_ndcg,
    expected_scores,
)
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


# nDCG and AP of drawn labels against trec_eval, and expected scores against a sum over all labels.


def naive(query: QueryPassages, labels: np.ndarray, relevant: int = 2) -> np.ndarray:
    """nDCG@10 and AP of each run, by trec_eval; shape (2, runs)."""
    qrels = {"q": {str(at): int(label) for at, label in enumerate([*labels, *query.elsewhere])}}
    ndcg = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})
    ap = pytrec_eval.RelevanceEvaluator(qrels, {"map"}, relevance_level=relevant)
    values = []
    for row in query.ranks:
        run = {"q": {str(at): float(-rank) for rank, at in enumerate(row) if at >= 0}}
        values.append((ndcg.evaluate(run)["q"]["ndcg_cut_10"], ap.evaluate(run)["q"]["map"]))
    return np.array(values).T


def test_measures_of_drawn_labels_equal_trec_eval_and_ir_measures() -> None:
    rng = np.random.default_rng(1)
    query = replace(drawn_track(1, 1)[0], elsewhere=np.array([3.0, 1.0]))
    query.ranks[2, 6:] = -1
    labels = rng.integers(0, 4, size=(5, 40)).astype(float)
    ndcg = drawn_ndcg(query.ranks, labels, 10, query.elsewhere)
    ap = drawn_ap(query.ranks, labels, 2, query.elsewhere)
    for at, of_draw in enumerate(labels):
        assert np.stack([ndcg[at], ap[at]]) == pytest.approx(naive(query, of_draw))
        qrels = [
            ir_measures.Qrel("q", str(doc), int(label))
            for doc, label in enumerate([*of_draw, *query.elsewhere])
        ]
        ranked = [
            ir_measures.ScoredDoc("q", str(doc), -rank) for rank, doc in enumerate(query.ranks[0].tolist())
        ]
        measure = ir_measures.parse_measure("AP(rel=2)@20")
        assert ap[at, 0] == pytest.approx(measure.calc_aggregate(qrels, ranked))
    nothing = np.zeros((1, 40))
    assert not drawn_ndcg(query.ranks, nothing, 10, np.empty(0)).any()
    assert not drawn_ap(query.ranks, nothing, 2, np.empty(0)).any()
    # A negative label has gain 0, as in trec_eval.
    assert (drawn_ndcg(query.ranks, np.maximum(labels - 1, 0), 10, query.elsewhere) >= 0).all()
    negative = np.where(labels == 0, -1.0, labels)
    assert drawn_ndcg(query.ranks, negative, 10, query.elsewhere).tolist() == ndcg.tolist()


def test_labels_are_drawn_with_their_probability_and_judgments_stay() -> None:
    query = drawn_track(2, 1)[0].hiding(np.arange(40) % 2 == 0)
    p = np.sort(np.random.default_rng(0).random((2, 40)), axis=0)[::-1]
    scale, n = np.array([0.0, 1.0, 3.0]), 4000
    drawn = drawn_labels(p, scale, np.random.default_rng(1).random((n, 40)), query)
    assert (drawn[:, query.judged] == query.judgments[query.judged]).all()
    for at in np.flatnonzero(~query.judged):
        for step, label in enumerate((1.0, 3.0)):
            error = math.sqrt(p[step, at] * (1 - p[step, at]) / n)
            assert abs((drawn[:, at] >= label).mean() - p[step, at]) <= 5 * error


def test_expected_scores_equal_the_sum_over_all_labels() -> None:
    """At most six binary passages per pool are unjudged, so that all 64 labellings can be enumerated."""
    queries = [
        drawn_query(np.random.default_rng([3, at]), f"q{at}", passages=14, depth=12, labels=2)
        for at in range(5)
    ]
    queries = [
        query.hiding(np.isin(np.arange(14), query.ranks[0, :open_ranks]))
        for query, open_ranks in zip(queries, (6, 5, 3, 1, 0), strict=True)
    ]
    queries[1] = replace(queries[1], elsewhere=np.ones(2))
    learned, draws = fit(queries), 4000
    scores = expected_scores(learned, queries, 10, 1, draws=draws)
    for at, query in enumerate(queries):
        p = by_regression(learned, query)[0]
        rows = np.flatnonzero(~query.judged)
        mean, square = np.zeros((2, 4)), np.zeros((2, 4))
        for given in itertools.product((0, 1), repeat=len(rows)):
            weight = math.prod(
                p[row] if label else 1 - p[row] for row, label in zip(rows, given, strict=True)
            )
            whole = query.judgments.copy()
            whole[rows] = given
            values = naive(query, whole, 1)
            mean += weight * values
            square += weight * values**2
        error = np.sqrt(np.maximum(square - mean**2, 0) / draws)
        assert (np.abs(scores[..., at] - mean) <= 4.5 * error + 1e-6).all()
        assert (error > 0).any() == bool(len(rows))


def test_a_fully_judged_pool_has_its_scores() -> None:
    queries = drawn_track(4, 5)
    every = np.stack([naive(query, query.judgments) for query in queries], axis=-1)
    assert expected_scores(fit(queries), queries, 10, 2, draws=5) == pytest.approx(every)
