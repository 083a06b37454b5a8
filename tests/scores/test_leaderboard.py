"""Leaderboards against the statistics module."""

from __future__ import annotations

import json
import math
import random
import statistics
from dataclasses import replace

import pyarrow
import pytest
from measure_values import values_of

from trecexam.scores.leaderboard import (
    NO_SCORE,
    Leaderboard,
    Row,
    Score,
    best_first,
    interval,
    leaderboard,
    score,
)

Values = dict[str, dict[str, dict[str, float]]]
QUERIES = [f"q{n}" for n in range(9)]


@pytest.fixture
def values() -> Values:
    rng = random.Random(3)
    return {
        f"run{n}": {q: {"P@20": rng.randint(0, 20) / 20, "AP": rng.random()} for q in QUERIES}
        for n in range(12)
    }


def test_means_and_standard_errors_equal_the_statistics_module(values: Values) -> None:
    board = leaderboard(values_of(values), ["AP", "P@20"], QUERIES, dict.fromkeys(values, QUERIES))
    assert board.measures == ("AP", "P@20")
    assert board.n_queries == 9
    assert board.average == "all"
    assert [row.run for row in board.rows] == sorted(
        values, key=lambda run: -statistics.mean(values[run][q]["AP"] for q in QUERIES)
    )
    for row in board.rows:
        assert (row.n_queries, row.n_answered) == (9, 9)
        for name, found in zip(board.measures, row.scores, strict=True):
            column = [values[row.run][q][name] for q in QUERIES]
            assert found.mean == pytest.approx(statistics.mean(column), abs=1e-15)
            assert found.stderr == pytest.approx(statistics.stdev(column) / math.sqrt(9), abs=1e-15)


def test_ties_are_ordered_by_name_even_if_sums_round_differently() -> None:
    names = ["b", "a", "c"]
    values = {
        "b": {"q1": {"P": 0.1}, "q2": {"P": 0.2}, "q3": {"P": 0.3}},
        "a": {"q1": {"P": 0.3}, "q2": {"P": 0.2}, "q3": {"P": 0.1}},
        "c": {"q1": {"P": 0.2}, "q2": {"P": 0.2}, "q3": {"P": 0.2}},
    }
    board = leaderboard(values_of(values), ["P"], ["q1", "q2", "q3"], {run: ["q1"] for run in names})
    assert [row.run for row in board.rows] == ["a", "b", "c"]
    assert board.rows[0].scores == board.rows[1].scores


def test_means_can_be_over_answered_queries(values: Values) -> None:
    answered = {"run0": {"q0", "q5", "not ours"}, "run1": set(), "run2": {"q3"}}
    three = {run: values[run] for run in answered}
    for run, by_query in three.items():
        for q in QUERIES:
            if q not in answered[run]:
                by_query[q] = {"P@20": 0.0, "AP": 0.0}
    over_all = {row.run: row for row in leaderboard(values_of(three), ["AP"], QUERIES, answered).rows}
    board = leaderboard(values_of(three), ["AP"], QUERIES, answered, average="answered")
    rows = {row.run: row for row in board.rows}
    assert board.average == "answered"
    assert board.n_queries == 9
    two = [values["run0"][q]["AP"] for q in ("q0", "q5")]
    assert rows["run0"].scores[0].mean == pytest.approx(statistics.mean(two))
    assert rows["run0"].scores[0].stderr == pytest.approx(statistics.stdev(two) / math.sqrt(2))
    assert over_all["run0"].scores[0].mean == pytest.approx(sum(two) / 9)
    assert rows["run1"] == Row("run1", 0, 0, (Score(0.0, 0.0),))
    assert rows["run2"] == Row("run2", 1, 1, (Score(values["run2"]["q3"]["AP"], math.nan),))
    assert (over_all["run2"].n_queries, over_all["run2"].n_answered) == (9, 1)


def test_an_interval_is_clipped_to_the_range_of_its_measure() -> None:
    wide = score([0.0, 1.0, 1.0])
    low, high = interval(wide, 3)
    assert low < 0
    assert high > 1
    for name in ("P(rel=4)@10", "rubric:nDCG@10", "Cover(rel=5,partial=3,weights='vital')@10", "SupportF1"):
        assert interval(wide, 3, measure=name) == (0, 1)
    for name in ("NumRet", "alpha_DCG@10", "Cover(rel=4,weights='item')@10", "x"):
        assert interval(wide, 3, measure=name) == (low, high)


def test_the_interval_is_that_of_students_t() -> None:
    from scipy import stats

    values = [0.1, 0.4, 0.2, 0.9, 0.5]
    expected = stats.t.interval(0.95, 4, loc=sum(values) / 5, scale=stats.sem(values))
    assert interval(score(values), 5) == pytest.approx(expected, abs=1e-12)
    assert interval(score([0.5, 0.5]), 2) == (0.5, 0.5)
    assert all(map(math.isnan, interval(score([0.5]), 1)))


def test_the_whole_header_is_that_of_the_declared_columns() -> None:
    """Other tests look at the columns that they are about."""
    rows = (Row("a", 2, 2, (Score(0.5, 0.1),), "a.run"), Row("b", 2, 1, (Score(0.4, 0.1),), "b.run", (3, 4)))
    board = Leaderboard(("P@20",), 2, "all", rows)
    assert board.to_tsv().splitlines()[0] == "run\tqueries\tP@20\tP@20.stderr"
    assert pyarrow.table(board).column_names == ["run", "queries", "P@20", "P@20.stderr"]
    assert replace(board, rows=rows[:1]).table.header == ("run", "P@20", "P@20.stderr")
    first, second = json.loads(board.to_json())["runs"]
    assert [*first] == ["run", "file", "n_answered", "scores"]
    assert [*second] == ["run", "file", "n_answered", "graded", "cells", "scores"]


def test_runs_without_a_mean_have_no_rank_and_stand_last() -> None:
    rows = [
        Row("b", 2, 2, (NO_SCORE,)),
        Row("a", 2, 2, (Score(0.0, 0.0),)),
        Row("c", 2, 2, (Score(0.5, 0.1),)),
    ]
    board = Leaderboard(("P@20",), 2, "all", tuple(sorted(rows, key=best_first)))
    assert [row.run for row in board.rows] == ["c", "a", "b"]
    assert board.ranks == (1, 2, None)
    assert json.loads(board.to_json())["runs"][2]["scores"] == {"P@20": {"mean": None, "stderr": None}}
    assert board.table["P@20"] == [0.5, 0.0, pytest.approx(math.nan, nan_ok=True)]
