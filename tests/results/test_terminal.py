from __future__ import annotations

import json
import re

from hypothesis import example, given
from hypothesis import strategies as st

from trecexam.results.table import Table, to_json, to_tsv
from trecexam.results.terminal import columns, cut, padded, printable, wrapped
from trecexam.results.text import shorten_list

HOSTILE = "\x1b]0;title\x07 \x1b[31mred \x9b2J \u202egnp.exe \ud800 \U000e0041"
#: Characters that a terminal may act upon, or that cannot be encoded.
STEERS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)


def test_terminal_control_characters_are_escaped() -> None:
    assert printable(HOSTILE) == (
        r"\x1b]0;title\x07 \x1b[31mred \x9b2J \u202egnp.exe \ud800 \U000e0041"
    )  # fmt: skip


@given(st.text(st.characters(codec=None)))
def test_printable_text_is_one_encodable_line(text: str) -> None:
    shown = printable(text)
    assert not STEERS.search(shown)
    assert len(shown.splitlines()) <= 1
    shown.encode()


@given(st.text(st.characters(codec=None)))
def test_json_keeps_every_value_without_terminal_control_characters(text: str) -> None:
    shown = to_json({"value": text})
    assert json.loads(shown) == {"value": text}
    assert not STEERS.search(shown)


def test_tables_escape_control_characters_too() -> None:
    table = Table(("run", "n"), (("a\x1b[2J", 1), ("日本", 2)))
    assert to_tsv(table) == "run\tn\na\\x1b[2J\t1\n日本\t2\n"
    assert repr(table) == "run       n\na\\x1b[2J  1\n日本      2"


def test_column_names_are_escaped_and_stay_one_column() -> None:
    table = Table(("theta", "q\t1\u202e"), ((1, 2),))
    assert to_tsv(table) == "theta\tq 1\\u202e\n1\t2\n"
    assert "\u202e" not in repr(table)


def test_negative_zero_is_printed_as_0() -> None:
    table = Table(("x",), ((-1e-12,), (-0.0,), (-0.25,)))
    assert to_tsv(table) == "x\n0.000000\n0.000000\n-0.250000\n"


@given(st.text(), st.integers(2, 40))
@example("00\u093e", 2)
def test_wrapped_lines_fit_and_lose_only_blanks(text: str, width: int) -> None:
    shown = printable(text)
    lines = wrapped(shown, width)
    assert all(columns(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == shown.replace(" ", "")


def test_wide_characters_take_two_columns_and_combining_marks_none() -> None:
    assert columns("日本") == 4
    assert columns("e\u0301") == 1
    assert padded("日", 4) == "日  "
    assert padded("日", 4, right=True) == "  日"


def test_a_name_cut_in_the_middle_keeps_its_end() -> None:
    assert cut("bm25-tuned-on-everything-run-7", 16, middle=True) == "bm25-tuned…run-7"
    assert cut("bm25-tuned-on-everything-run-7", 16) == "bm25-tuned-on-e…"
    assert cut("x" * 100_000, 10) == "x" * 9 + "…"
    assert len(cut("a" + "\u0301" * 100_000, 10)) <= 41


def test_a_small_p_value_is_not_shown_as_0_unlike_other_small_numbers() -> None:
    rows = ((1e-17, 4.31e-49), (0.0, 0.0), (0.5, 0.00012), (None, float("nan")))
    table = Table(("mean", "p"), rows, small=("p",))
    assert to_tsv(table).splitlines() == [
        "mean\tp",
        "0.000000\t4.3e-49",
        "0.000000\t0.000000",
        "0.500000\t0.000120",
        "\t",
    ]
    assert repr(table).splitlines()[1].split() == ["0.000", "4.3e-49"]


def test_of_many_names_the_first_are_shown() -> None:
    names = [f"n{number}" for number in range(1005)]
    assert shorten_list(names[:2], 2) == "'n0', 'n1'"
    assert shorten_list(names, 2) == "'n0', 'n1' and 1,003 more"
    assert shorten_list([]) == ""
