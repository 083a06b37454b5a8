"""How a track's history is shown: rows of its log, one line an entry, an entry in full."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from trecexam.features.history.arithmetic import Entry, LabelChange, RunChange
from trecexam.features.history.reasons import items_of, reason
from trecexam.tables.table import Table, Value, to_aligned
from trecexam.tables.terminal import printable_json
from trecexam.tables.text import plural

#: Labels that the text of an entry shows.
SHOWN = 20
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
        labels_changed: changes among the run's first passages that the measure counts, on queries where its
            value changed: labels, those that crossed its `rel`, or passages that reach other items.
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
            reason(row, entry),
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


def entry_text(entry: Entry) -> str:
    """An entry for people: why, which runs moved, because of what."""
    board = entry.board
    parts = [f"entry {entry.entry}, {entry.when}\n{entry.cause}\n"]
    moved = [row for row in board.runs if row.change != "same" or row.was]
    still = len(board.runs) - len(moved)
    if moved:
        measure = board.measures_after[0] if board.measures_after else ""
        header = ("run", "rank", measure, "change", "because")
        rows = tuple(
            (row.run, _ranks(row), *_mean(row.means.get(measure, (None, None))), reason(row, entry))
            for row in moved
        )
        parts.append(to_aligned(Table(header, rows)))
    if still:
        others = plural(still, "other run") if moved else "all runs"
        parts.append(f"{others}: same rank, same mean\n")
    if board.items:
        parts.append(_items(entry))
    if board.labels:
        parts.append(_labels(entry))
    return "\n".join(parts)


def _ranks(row: RunChange) -> str:
    if row.change in {"new", "gone"}:
        return f"{row.change} {row.rank_after or row.rank_before}"
    if row.rank_before == row.rank_after:
        return str(row.rank_after)
    return f"{row.rank_before} -> {row.rank_after}"


def _mean(pair: tuple[float | None, float | None]) -> tuple[float | None, str]:
    before, after = pair
    if before is None or after is None:
        return (before if after is None else after), ""
    return after, "" if f"{after - before:+.4f}" in {"+0.0000", "-0.0000"} else f"{after - before:+.4f}"


def _items(entry: Entry) -> str:
    changed = [item for item in entry.board.items if item.change != "kept"]
    kept = len(entry.board.items) - len(changed)
    words = [items_of(entry.board.items)] if changed else []
    if kept:
        others = plural(kept, "other item" if changed else "item")
        words.append(f"{others} {'is' if kept == 1 else 'are'} reached by other passages than before")
    rows: tuple[tuple[Value, ...], ...] = tuple(
        (item.query_id, item.item_id, item.change, f"{item.before} -> {item.after}", item.gained, item.lost)
        for item in changed[:SHOWN]
    )
    table = Table(("query_id", "item_id", "change", "passages that reach it", "gained", "lost"), rows)
    return "; ".join(words) + "\n" + (to_aligned(table) if rows else "")


def _labels(entry: Entry) -> str:
    board = entry.board
    changed = [row for row in board.labels if row.before != row.after]
    came = sum(row.before is None for row in changed)
    went = sum(row.after is None for row in changed)
    up = sum(row.before < row.after for row in changed if row.before is not None and row.after is not None)
    kinds = (("new", came), ("gone", went), ("up", up), ("down", len(changed) - came - went - up))
    head = [f"{plural(len(changed), 'label')} changed: "] if changed else ["no label changed"]
    head[0] += ", ".join(f"{count:,} {word}" for word, count in kinds if count)
    only = len(board.labels) - len(changed)
    if only:
        head.append(f"{plural(only, 'passage')} with other items under the same label")
    # What moved runs comes first; the rest is in --labels.
    counted = {(row.query_id, row.doc_id) for run in board.runs for row in run.because}
    first = sorted(board.labels, key=lambda row: (row.query_id, row.doc_id) not in counted)[:SHOWN]
    rows: tuple[tuple[Value, ...], ...] = tuple(
        (row.query_id, row.doc_id, row.before, row.after, len(row.gained) or None, len(row.lost) or None)
        for row in first
    )
    more = len(board.labels) - len(first)
    tail = f"and {more:,} more: --labels shows all, and which items\n" if more else ""
    return f"{'; '.join(head)}\n{to_aligned(Table((*LABEL_COLUMNS[:4], 'items gained', 'lost'), rows))}{tail}"


def entry_json(entry: Mapping[str, Any]) -> str:
    """An entry's file: JSON, with a line for each run, item and label."""
    board = entry["board"]
    long = {name: board[name] for name in ("runs", "items", "labels")}
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
