"""How a track's history is shown: rows of its log, one line an entry, its labels, its file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from trecexam.features.history.changes import LabelChange
from trecexam.features.history.entry import Entry
from trecexam.tables.table import Table, Value
from trecexam.tables.terminal import printable_json

OVERVIEW_COLUMNS = ("entry", "when", "new", "gone", "moved", "up", "down", "labels_changed", "cause")
LABEL_COLUMNS = ("query_id", "doc_id", "label.before", "label.after", "gained", "lost")
LOG_COLUMNS = (
    "entry",
    "when",
    "cause",
    "run",
    "rank.before",
    "rank.after",
    "measure",
    "mean.before",
    "mean.after",
    "labels_changed",
    "because",
    "labels_changed.all",
)


class LogRow(NamedTuple):
    """A row of `out/history/log.tsv`: a run that is new, gone or moved; or an entry in which none did.

    Attributes:
        run: "" where no run moved.
        rank_before, rank_after: None where the run was, or is, not there.
        measure: the first one, which ranks the runs; `mean_before` and `mean_after` are of it.
        labels_changed: labels that changed among the run's first passages, to the pool's depth.
        because: why it moved, in a few words.
        labels_changed_all: labels that changed in the whole pool.
    """

    entry: int
    when: str
    cause: str
    run: str
    rank_before: int | None
    rank_after: int | None
    measure: str
    mean_before: float | None
    mean_after: float | None
    labels_changed: int
    because: str
    labels_changed_all: int


def log_rows(entry: Entry) -> list[LogRow]:
    """The rows of an entry."""
    board = entry.board
    measure = board.measures_after[0] if board.measures_after else ""
    total = sum(row.before != row.after for row in board.labels)
    rows = [
        LogRow(
            entry.entry,
            entry.when,
            entry.cause,
            row.run,
            row.rank_before,
            row.rank_after,
            measure,
            *row.means.get(measure, (None, None)),
            row.labels,
            row.because(board.depth),
            total,
        )
        for row in board.runs
        if row.change != "same" or row.was
    ]
    nobody = LogRow(
        entry.entry, entry.when, entry.cause, "", None, None, measure, None, None, 0, "no run moved", total
    )
    return rows or [nobody]


def log_table(rows: Iterable[LogRow]) -> Table:
    """The rows as a table, in the shape of the file."""
    return Table(LOG_COLUMNS, tuple(rows))


def log_rows_of(text: str) -> tuple[LogRow, ...]:
    """The rows of a log file's text.

    Raises:
        ValueError: it is not such a file.
    """
    header, *lines = text.removesuffix("\n").split("\n")
    if tuple(header.split("\t")) != LOG_COLUMNS:
        raise ValueError("another header")
    return tuple(_log_row(line.split("\t")) for line in lines)


def _log_row(f: Sequence[str]) -> LogRow:
    if len(f) != len(LOG_COLUMNS):
        raise ValueError("another number of columns")
    return LogRow(
        int(f[0]),
        f[1],
        f[2],
        f[3],
        int(f[4]) if f[4] else None,
        int(f[5]) if f[5] else None,
        f[6],
        float(f[7]) if f[7] else None,
        float(f[8]) if f[8] else None,
        int(f[9]),
        f[10],
        int(f[11]),
    )


def overview_table(rows: Iterable[LogRow]) -> Table:
    """A line an entry: when, how many runs came, went and moved, how many labels changed, and why.

    A run has moved where its rank changed, up or down, or its mean.
    """
    entries: dict[int, list[LogRow]] = {}
    for row in rows:
        entries.setdefault(row.entry, []).append(row)
    lines: list[tuple[Value, ...]] = []
    for number, here in entries.items():
        both = [(row.rank_before, row.rank_after) for row in here if row.run]
        lines.append(
            (
                number,
                here[0].when,
                sum(before is None for before, _ in both),
                sum(after is None for _, after in both),
                sum(before is not None and after is not None for before, after in both),
                sum(before > after for before, after in both if before and after),
                sum(before < after for before, after in both if before and after),
                here[0].labels_changed_all,
                here[0].cause,
            )
        )
    return Table(OVERVIEW_COLUMNS, tuple(lines))


def label_table(labels: Iterable[LabelChange]) -> Table:
    """A row a passage: its label before and after, and the items that it reaches now and did not, or did."""
    rows: Iterable[tuple[Value, ...]] = (
        (row.query_id, row.doc_id, row.before, row.after, " ".join(row.gained), " ".join(row.lost))
        for row in labels
    )
    return Table(LABEL_COLUMNS, tuple(rows))


def entry_json(entry: Mapping[str, Any]) -> str:
    """An entry's file: JSON, with a line for each run and label."""
    board = entry["board"]
    long = {name: board[name] for name in ("runs", "labels")}
    short = {name: value for name, value in board.items() if name not in long}
    fields = [f" {_dumped(name)}: {_dumped(value)}" for name, value in entry.items() if name != "board"]
    inner = [f"  {_dumped(name)}: {_dumped(value)}" for name, value in short.items()]
    inner += (f"  {_dumped(name)}: {_lines(rows)}" for name, rows in long.items())
    fields.append(' "board": {\n' + ",\n".join(inner) + "\n }")
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _lines(rows: Sequence[Any]) -> str:
    return "[\n" + ",\n".join(f"   {_dumped(row)}" for row in rows) + "\n  ]" if rows else "[]"


def _dumped(value: Any) -> str:
    return printable_json(json.dumps(value, ensure_ascii=False))
