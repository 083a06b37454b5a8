from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.features.history.entry import HistoryLog, LogRow, log_rows_of, log_table
from trecexam.tables.table import to_tsv
from trecexam.tables.terminal import printable

words = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Z")), max_size=5).map(printable)
means = st.none() | st.integers(0, 10**6).map(lambda n: n / 10**6)
ranks = st.none() | st.integers(1, 100)
counts = st.integers(0, 10**6)
rows = st.builds(
    LogRow, st.integers(1, 99), words, words, words, ranks, ranks, words, means, means, counts, words, counts
)


@given(st.lists(rows, min_size=1))
def test_a_log_is_read_as_it_was_written(written: list[LogRow]) -> None:
    assert log_rows_of(to_tsv(log_table(written))) == tuple(written)


@pytest.mark.parametrize("text", ["", "junk\n", to_tsv(log_table([])) + "1\t2\n"])
def test_what_is_no_log_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        log_rows_of(text)


def test_an_entry_has_a_line_in_the_overview() -> None:
    def row(entry: int, run: str, before: int | None, after: int | None) -> LogRow:
        return LogRow(entry, "when", "cause", run, before, after, "P@5", None, None, 0, "", 7)

    found = HistoryLog(
        (
            row(1, "a", None, 1),
            row(2, "a", 1, 3),
            row(2, "b", 2, None),
            row(2, "c", 3, 3),
            row(3, "", None, None),
        )
    )
    assert found.table.rows == (
        (1, "when", 1, 0, 0, 0, 0, 7, "cause"),
        (2, "when", 0, 1, 2, 0, 1, 7, "cause"),
        (3, "when", 0, 0, 0, 0, 0, 7, "cause"),
    )
