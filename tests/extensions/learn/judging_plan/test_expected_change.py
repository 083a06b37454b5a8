"""What judgments are expected to change, against predictions made anew after each draw's judgments."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from trecexam.extensions.learn.arithmetic.learning import Learned, QueryPassages, fit, predict
from trecexam.extensions.learn.arithmetic.ndcg import ndcg
from trecexam.extensions.learn.arithmetic.pooled import PooledQueryToLearn
from trecexam.extensions.learn.arithmetic.posterior_labels import PosteriorLabels
from trecexam.extensions.learn.judging_plan.expected_change import DrawnLeaderboards, expected_change

DRAWS = 6


def make_queries(n_docs: int = 14) -> list[PooledQueryToLearn]:
    """Passages are as relevant as their first feature says; a third is judged, and one has no text."""
    rng = np.random.default_rng(3)
    queries = []
    for at in range(4):
        docs = tuple(f"q{at}-{doc:02}" for doc in range(n_docs))
        rows = np.arange(n_docs - 1)
        features = rng.normal(size=(n_docs - 1, 2))
        vectors = rng.normal(size=(n_docs - 1, 5))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        judgments = np.full(n_docs, np.nan)
        judged = rows[at % 3 :: 3]
        judgments[judged] = np.clip(np.round(features[judged, 0] + 1), 0, 3)
        ranks = np.array([rng.permutation(n_docs)[:12] for _ in range(5)], np.int32)
        queries.append(
            PooledQueryToLearn(
                QueryPassages(f"q{at}", docs[:-1], vectors.astype(np.float32), features, judgments[rows]),
                docs,
                rows,
                judgments,
                ranks,
                np.array([2.0]) if at else np.empty(0),
                np.full(n_docs, np.nan),
            )
        )
    return queries


def board(queries: list[PooledQueryToLearn], gains: list[np.ndarray]) -> np.ndarray:
    columns = []
    for query, of_query in zip(queries, gains, strict=True):
        whole = np.nan_to_num(query.judgments)
        whole[query.rows] = of_query
        columns.append(ndcg(query.ranks, whole, 10, query.elsewhere))
    return np.mean(columns, axis=0)


@pytest.fixture(scope="module")
def queries() -> list[PooledQueryToLearn]:
    return make_queries()


@pytest.fixture(scope="module")
def learned(queries: list[PooledQueryToLearn]) -> Learned:
    return fit([query.passages for query in queries])


def draws_of(learned: Learned, queries: list[PooledQueryToLearn]) -> list[np.ndarray]:
    labels = PosteriorLabels(learned, queries, DRAWS)
    return [labels.draw(at)[:, query.rows] for at, query in enumerate(queries)]


def test_leaderboards_after_judgments_are_those_of_predictions_with_what_the_draw_says(
    queries: list[PooledQueryToLearn], learned: Learned
) -> None:
    boards = DrawnLeaderboards(learned, queries, DRAWS)
    judged = [np.flatnonzero(np.isnan(query.judgments))[:n].tolist() for n, query in enumerate(queries)]
    after = boards.after(judged)
    drawn = draws_of(learned, queries)
    for at in range(DRAWS):
        gains = []
        for query, of_query, rows in zip(queries, drawn, judged, strict=True):
            judgments = query.passages.judgments.copy()
            told = np.isin(query.rows, rows)
            judgments[told] = of_query[at, told]
            gains.append(predict(learned, replace(query.passages, judgments=judgments)).gains)
        assert after[:, at] == pytest.approx(board(queries, gains), abs=1e-6)


def test_without_judgments_nothing_changes_and_with_all_of_them_it_is_the_draws_leaderboard(
    queries: list[PooledQueryToLearn], learned: Learned
) -> None:
    boards = DrawnLeaderboards(learned, queries, DRAWS)
    before = boards.after([[]] * len(queries))
    assert before == pytest.approx(np.tile(boards.expected[:, None], DRAWS), abs=1e-6)
    assert boards.expected == pytest.approx(
        board(queries, [predict(learned, query.passages).gains for query in queries])
    )
    every = boards.after([list(range(len(query.doc_ids))) for query in queries])
    assert every == pytest.approx(boards.drawn)
    for at, gains in enumerate(zip(*draws_of(learned, queries), strict=True)):
        assert boards.drawn[:, at] == pytest.approx(board(queries, list(gains)))


def test_the_expected_change_is_the_share_of_pairs_that_swap_twice_over() -> None:
    before, after = np.array([[3.0, 3], [2, 2], [1, 1]]), np.array([[3.0, 2], [2, 3], [1, 1]])
    assert expected_change(before, after) == pytest.approx((0 + 2 / 3) / 2)
    # Where all runs are tied, there is no order that could change.
    assert expected_change(np.ones((3, 2)), after) == 0


def test_pairs_are_undecided_where_more_than_a_twentieth_of_draws_has_the_other_order(
    queries: list[PooledQueryToLearn], learned: Learned
) -> None:
    boards = DrawnLeaderboards(learned, queries, 60)
    names = sorted(range(5), key=lambda run: -boards.expected[run])
    pairs = [
        (better, worse)
        for better, worse in itertools.combinations(names, 2)
        if sum(boards.drawn[worse, at] > boards.drawn[better, at] for at in range(60)) / 60 > 0.05
    ]
    assert boards.undecided == (
        sum(pair in pairs for pair in itertools.pairwise(names)),
        4,
        len(pairs),
        10,
    )
    assert pairs


@pytest.mark.parametrize("judged", [1, 2])
def test_a_few_judgments_of_one_query_are_enough(judged: int) -> None:
    queries = make_queries()
    labels = queries[0].judgments
    first = np.flatnonzero(~np.isnan(labels))[0]
    kept = [first, *np.flatnonzero((labels != labels[first]) & ~np.isnan(labels))[:judged]]
    hidden = ~np.isin(np.arange(len(labels)), kept)
    few = [queries[0].hiding(hidden), *(query.hiding(query.judgments >= 0) for query in queries[1:])]
    boards = DrawnLeaderboards(fit([query.passages for query in few]), few, 20)
    assert boards.undecided.pairs > 0
    assert np.isfinite(boards.drawn).all()


def test_without_runs_nothing_is_undecided(queries: list[PooledQueryToLearn], learned: Learned) -> None:
    none = [replace(query, ranks=query.ranks[:0]) for query in queries]
    assert DrawnLeaderboards(learned, none, DRAWS).undecided == (0, 0, 0, 0)
