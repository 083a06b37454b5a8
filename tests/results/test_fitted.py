"""Tables that fit a width; text widths are computed independently here."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import replace

import pytest
from headings import column_names
from hypothesis import given
from hypothesis import strategies as st

from trecexam.results.printers import fitted
from trecexam.results.table import Layout, Table, Value
from trecexam.results.terminal import cut_apart, printable

MEASURES = ("P(rel=4)@20", "nDCG@10", "Cover(rel=4)@20", "AP(rel=4)", "RR")


def board(names: list[str], measures: tuple[str, ...] = MEASURES) -> Table:
    """The table of a leaderboard."""
    header = ("run", *(column for name in measures for column in (name, f"{name}.stderr")))
    rows = tuple((name, *(0.5 - n / 1000, 0.042) * len(measures)) for n, name in enumerate(names))
    return Table(header, rows)


def drawn(text: str) -> int:
    """Columns of a text without joined emoji: 2 for East Asian wide characters, 0 for marks."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def test_at_80_columns_a_leaderboard_has_rank_run_and_three_measures_with_their_errors() -> None:
    table = board(["first", "second", "third"])
    shown = fitted(replace(table, layout=Layout(("run",), most=3, ranks=(1, 2, 2))), 80)
    assert shown.tables == (
        (
            ("rank  run      P(rel=4)@20       nDCG@10  Cover(rel=4)@20",),
            (
                "   1  first   0.500 ±0.042  0.500 ±0.042     0.500 ±0.042",
                "   2  second  0.499 ±0.042  0.499 ±0.042     0.499 ±0.042",
                "   2  third   0.498 ±0.042  0.498 ±0.042     0.498 ±0.042",
            ),
        ),
    )
    assert shown.left_out == ("AP(rel=4)", "RR")
    assert not shown.cut
    assert shown.legend == ("± standard error",)


def test_columns_without_room_go_to_another_table_if_none_may_be_omitted() -> None:
    shown = fitted(replace(board(["first", "second"]), layout=Layout(("run",), split=True)), 40)
    assert [column_names(heading) for heading, _ in shown.tables] == [
        ["run", "P(rel=4)@20", "nDCG@10"],
        ["run", "Cover(rel=4)@20", "AP(rel=4)"],
        ["run", "RR"],
    ]
    assert shown.left_out == ()


def test_intervals_are_behind_their_values_and_an_unknown_one_is_empty() -> None:
    table = Table(
        ("measure", "tau", "n", "tau.low", "tau.high"),
        (("P@5", 0.75, 3, 0.512, 0.9), ("nDCG@10", -0.25, 3, -0.5, 0.1), ("AP", math.nan, 1, math.nan, None)),
    )
    shown = fitted(table, 80)
    assert shown.tables == (
        (
            ("measure                     tau  n",),
            (
                "P@5       0.750  [0.512, 0.900]  3",
                "nDCG@10  -0.250 [-0.500, 0.100]  3",
                "AP                               1",
            ),
        ),
    )
    assert shown.legend == ("[95% interval]",)
    unknown = Table(table.header, (("AP", 0.5, 1, math.nan, math.nan),))
    assert fitted(unknown, 80).legend == ()


def test_columns_are_in_the_order_of_the_layout() -> None:
    table = Table(("key", "a", "b", "c"), (("x", 1, 2, 3),))
    shown = fitted(replace(table, layout=Layout(first=("c", "nowhere", "b"), without=("a",))), 80)
    assert shown.tables[0] == (("key  c  b",), ("x    3  2",))
    assert shown.left_out == ()


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize(
    "names",
    [
        ["a"],
        [f"run{n}" for n in range(100)],
        [f"{'bm25-' * 20}{n:03}{'-rerank' * 20}" for n in range(100)],
        [f"検索エンジン{n}号機の長い名前{'機' * n}" for n in range(40)],
        [],
    ],
    ids=["one", "hundred", "alike", "wide", "none"],
)
def test_lines_fit_the_width_and_run_names_stay_distinct(names: list[str], width: int) -> None:
    ranks = tuple(range(1, len(names) + 1))
    shown = fitted(replace(board(names), layout=Layout(("run",), most=3, ranks=ranks)), width)
    heading, rows = shown.tables[0]
    assert len(rows) == len(names)
    assert max(map(drawn, (*heading, *rows))) <= width
    assert len({drawn(row) for row in rows}) <= 1, "columns are in line"
    assert len({row.split("0.")[0].split(maxsplit=1)[1] for row in rows}) == len(names)
    assert column_names(heading)[:3] == [*(["rank"] if names else []), "run", *MEASURES][:3]
    assert shown.cut == any(name not in "\n".join(rows) for name in names)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_with_many_measures_each_is_in_one_table_or_listed_as_omitted(width: int) -> None:
    measures = tuple(f"Cover(rel={n % 5},weights=vital)@{n}" for n in range(60))
    table = board([f"{'run' * 30}{n}" for n in range(3)], measures)
    split = fitted(replace(table, layout=Layout(("run",), split=True, ranks=(1, 2, 3))), width)
    assert max(drawn(line) for table in split.tables for lines in table for line in lines) <= width
    assert [name for heading, _ in split.tables for name in column_names(heading)[2:]] == list(measures)
    assert sum(rows[0].count("±") for _, rows in split.tables) == len(measures)
    first = fitted(replace(table, layout=Layout(("run",), most=3, ranks=(1, 2, 3))), width)
    n_shown = len(column_names(first.tables[0][0])) - 2
    assert [name for name in first.left_out if name != "standard errors"] == [*measures[n_shown:]]
    assert n_shown == {40: 1, 80: 3, 120: 3}[width]


def test_names_that_differ_in_their_middle_are_cut_around_the_difference() -> None:
    names = [f"{'x' * 50}k1={n}{'y' * 50}" for n in range(3)]
    assert cut_apart(names, 16) == [f"xxxxx…1={n}yyyyyy…" for n in range(3)]


def test_names_that_differ_in_two_distant_places_are_numbered() -> None:
    names = [f"{'a' * 40}{x}{'m' * 40}{y}{'z' * 40}" for x in "12" for y in "12"]
    shown = cut_apart(names, 16)
    assert len(set(shown)) == 4
    assert all(len(name) <= 16 for name in shown)


@given(
    st.lists(st.text("ab…#1日é", min_size=0, max_size=60), max_size=12)
    | st.lists(st.integers(0, 999).map(lambda n: f"{'x' * 50}{n}{'y' * 50}"), max_size=12),
    st.integers(8, 30),
)
def test_different_names_are_shown_differently_and_fit(names: list[str], width: int) -> None:
    shown = cut_apart(names, width)
    assert all(drawn(name) <= width for name in shown)
    assert len(set(shown)) == len(set(map(printable, names)))


VALUES = st.none() | st.floats() | st.integers(-(10**6), 10**6) | st.text("abc日\x1b", max_size=30)


@given(
    st.lists(
        st.sampled_from(["run", "n", "P@5", "P@5.stderr", "P@5.low", "P@5.high", "P@5 p-value", "why"]),
        min_size=1,
        unique=True,
    ).flatmap(
        lambda header: st.tuples(
            st.just(tuple(header)), st.lists(st.tuples(*[VALUES] * len(header)), max_size=5)
        )
    ),
    st.booleans(),
)
def test_every_column_is_shown_or_listed_as_omitted(
    table: tuple[tuple[str, ...], list[tuple[Value, ...]]], split: bool
) -> None:
    header, rows = table
    shown = fitted(replace(Table(header, tuple(rows)), layout=Layout(split=split)), 60)
    assert all(len(lines) == len(rows) for _, lines in shown.tables)
    assert not split or not shown.left_out
    assert "\x1b" not in "".join(line for table in shown.tables for lines in table for line in lines)
    whole = fitted(Table(header, tuple(rows)), None)
    assert len(whole.tables) == 1
    assert not whole.left_out
    assert not whole.cut


def test_a_heading_breaks_over_lines_and_is_never_cut() -> None:
    table = Table(("run", "nuggets:vital_score@10", "kendall_tau"), (("bm25", 0.5, 0.25),))
    assert fitted(table, None).tables[0][0] == ("run   nuggets:vital_score@10  kendall_tau",)
    heading, rows = fitted(replace(table, header=(*table.header[:2], "x" * 12)), 40).tables[0]
    assert column_names(heading) == ["run", "nuggets:vital_score@10", "x" * 12]
    assert heading == ("       nuggets:vital_score", "run                    @10  xxxxxxxxxxxx")
    assert rows == ("bm25                 0.500         0.250",)


def test_an_empty_column_gives_way_to_columns_with_values() -> None:
    table = Table(("measure", "tau", "rho", "n_runs"), (("a" * 20, None, 0.5, 1), ("b" * 20, None, 0.25, 2)))
    assert column_names(fitted(table, 50).tables[0][0]) == ["measure", "tau", "rho", "n_runs"]
    shown = fitted(replace(table, header=("measure", "tau" * 3, "rho" * 3, "n_runs")), 40)
    assert column_names(shown.tables[0][0]) == ["measure", "rho" * 3, "n_runs"]
    assert shown.left_out == ("tau" * 3,)
    assert not shown.cut
