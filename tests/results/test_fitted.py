"""Tables that fit a width; text widths are computed independently here."""

from __future__ import annotations

import math
import sys
import unicodedata
from dataclasses import replace
from typing import NamedTuple

import pytest
from headings import column_names
from hypothesis import example, given
from hypothesis import strategies as st

from trecexam.results.table import Layout, Table, Value
from trecexam.results.terminal import cut_apart, printable
from trecexam.results.view import table_lines

MEASURES = ("P(rel=4)@20", "nDCG@10", "Cover(rel=4)@20", "AP(rel=4)", "RR")


class Shown(NamedTuple):
    """The lines of a heading and of rows, and what the last lines say."""

    heading: list[str]
    rows: list[str]
    last: list[str]


def shown(table: Table, width: int, *, wide: bool = False) -> Shown:
    """What a terminal of a width shows."""
    room = sys.maxsize if wide else width
    lines = table_lines(table.view(wide=wide), room, "ALL", heading="H{}".format, last="L{}".format)
    found = Shown([], [], [])
    for line in lines:
        (found.heading if line[:1] == "H" else found.last if line[:1] == "L" else found.rows).append(line)
    last = " ".join(line[1:] for line in found.last)
    return Shown([line[1:] for line in found.heading], found.rows, last.split("; "))


def board(names: list[str], measures: tuple[str, ...] = MEASURES) -> Table:
    """The table of a leaderboard."""
    header = ("run", *(column for name in measures for column in (name, f"{name}.stderr")))
    rows = tuple((name, *(0.5 - n / 1000, 0.042) * len(measures)) for n, name in enumerate(names))
    return Table(header, rows)


def drawn(text: str) -> int:
    """Columns of a text without joined emoji: 2 for East Asian wide characters, 0 for marks."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def test_at_80_columns_a_leaderboard_has_rank_run_and_the_measures_that_fit_with_their_errors() -> None:
    table = replace(board(["first", "second", "third"]), layout=Layout(("run",), ranks=(1, 2, 2)))
    assert shown(table, 80) == (
        [
            "                                          Cover(rel=4)",
            "rank  run      P(rel=4)@20       nDCG@10           @20     AP(rel=4)",
        ],
        [
            "   1  first   0.500 ±0.042  0.500 ±0.042  0.500 ±0.042  0.500 ±0.042",
            "   2  second  0.499 ±0.042  0.499 ±0.042  0.499 ±0.042  0.499 ±0.042",
            "   2  third   0.498 ±0.042  0.498 ±0.042  0.498 ±0.042  0.498 ±0.042",
        ],
        ["± standard error", "left out: RR", "ALL"],
    )


def test_intervals_are_behind_their_values_and_an_unknown_one_is_empty() -> None:
    table = Table(
        ("measure", "tau", "n", "tau.low", "tau.high"),
        (("P@5", 0.75, 3, 0.512, 0.9), ("nDCG@10", -0.25, 3, -0.5, 0.1), ("AP", math.nan, 1, math.nan, None)),
    )
    assert shown(table, 80) == (
        ["measure                     tau  n"],
        [
            "P@5       0.750  [0.512, 0.900]  3",
            "nDCG@10  -0.250 [-0.500, 0.100]  3",
            "AP                               1",
        ],
        ["[95% interval]"],
    )
    assert shown(Table(table.header, (("AP", 0.5, 1, math.nan, math.nan),)), 80).last == [""]


def test_columns_are_in_the_order_of_the_layout_and_those_without_values_are_omitted() -> None:
    table = Table(("key", "a", "b", "c", "d"), (("x", 1, 2, 3, None),))
    laid_out = replace(table, layout=Layout(first=("c", "nowhere", "b"), without=("a",)))
    assert shown(laid_out, 80) == (["key  c  b"], ["x    3  2"], [""])
    assert column_names(shown(laid_out, 80, wide=True).heading) == ["key", "c", "b", "a", "d"]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_with_many_measures_the_first_are_shown_and_the_others_counted(width: int) -> None:
    measures = tuple(f"Cover(rel={n % 5},weights=vital)@{n}" for n in range(60))
    table = board([f"{'run' * 30}{n}" for n in range(3)], measures)
    heading, rows, last = shown(replace(table, layout=Layout(("run",), ranks=(1, 2, 3))), width)
    assert max(map(drawn, (*heading, *rows))) <= width
    n_shown = len(column_names(heading)) - 2
    assert n_shown == {40: 1, 80: 3, 120: 4}[width]
    missing = measures[n_shown:]
    assert last[-3] == f"left out: {', '.join(missing[:4])} and {len(missing) - 4} more"


@given(
    st.lists(st.text("ab…#1日é", min_size=0, max_size=60), max_size=12)
    | st.lists(st.integers(0, 999).map(lambda n: f"{'x' * 50}{n}{'y' * 50}"), max_size=12),
    st.integers(8, 30),
)
def test_different_names_are_shown_differently_and_fit(names: list[str], width: int) -> None:
    cut = cut_apart(names, width)
    assert all(drawn(name) <= width for name in cut)
    assert len(set(cut)) == len(set(map(printable, names)))


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
    )
)
@example((("run",), [(math.inf,)]))
@example((("run", "P@5"), [(None, None), (math.nan, "")]))
def test_any_table_is_shown_with_all_its_rows(
    table: tuple[tuple[str, ...], list[tuple[Value, ...]]],
) -> None:
    header, rows = table
    for wide in (False, True):
        found = shown(Table(header, tuple(rows)), 60, wide=wide)
        assert len(found.rows) == len(rows)
        assert "\x1b" not in "".join(line for lines in found for line in lines)
    assert not any(line.startswith(("left out", "long names")) for line in found.last)


def test_a_heading_breaks_over_lines_and_is_never_cut() -> None:
    table = Table(("run", "nuggets:vital_score@10", "x" * 12), (("bm25", 0.5, 0.25),))
    assert shown(table, 80).heading == ["run   nuggets:vital_score@10  xxxxxxxxxxxx"]
    heading, rows, _ = shown(table, 40)
    assert column_names(heading) == ["run", "nuggets:vital_score@10", "x" * 12]
    assert heading == ["         nuggets:", "      vital_score", "run           @10  xxxxxxxxxxxx"]
    assert rows == ["bm25        0.500         0.250"]


def test_intervals_go_where_all_columns_fit_without_them() -> None:
    header = ("graded label", "judged", "all", "kappa", "kappa.low", "kappa.high")
    table = Table(header, (("4", 7, 12, 0.5, 0.25, 0.75),))
    assert shown(table, 60).rows == ["4                  7   12  0.500 [0.250, 0.750]"]
    assert shown(table, 40).rows == ["4             7   12  0.500"]
    assert shown(table, 40).last == ["left out: [95% interval]", "ALL"]


def test_more_columns_of_names_than_a_line_has_room_for_are_all_there() -> None:
    table = Table(tuple(f"name{n}" for n in range(30)), (("value",) * 30,))
    found = shown(table, 40)
    assert len(found.rows) == 1
    assert found.heading[-1].split() == list(table.header)
