from __future__ import annotations

from trecexam.features.history.entry import HistoryLog, LogRow


def test_an_entry_has_one_line_in_the_overview() -> None:
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
