"""A track's history, and an entry of it: which ranks moved, and because of which labels and files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from trecexam.features.history.changes import BoardChange, LabelChange
from trecexam.tables.result import Result
from trecexam.tables.table import Layout, Table, Value

OVERVIEW_COLUMNS = ("entry", "when", "new", "gone", "moved", "up", "down", "labels_changed", "cause")
LABEL_COLUMNS = ("query_id", "doc_id", "label.before", "label.after", "gained", "lost")


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


#: As the attributes, with a dot before their last word.
LOG_COLUMNS = tuple(re.sub("_(before|after|all)$", r".\1", name) for name in LogRow._fields)


@dataclass(frozen=True)
class HistoryLog(Result):
    """Each change of a leaderboard: the table `history` has a row for each, `log` for each run that moved.

    Attributes:
        rows: the oldest first.
    """

    rows: tuple[LogRow, ...]
    notes: tuple[str, ...] = ()

    def declare(self) -> dict[str, Table]:
        """`history`: when, how many runs came, went and moved, how many labels changed, and why; `log`.

        A run has moved where its rank changed, up or down, or its mean.
        """
        entries: dict[int, list[LogRow]] = {}
        for row in self.rows:
            entries.setdefault(row.entry, []).append(row)
        lines: list[tuple[Value, ...]] = []
        for number, entry_rows in entries.items():
            both = [(row.rank_before, row.rank_after) for row in entry_rows if row.run]
            moved = [(before, after) for before, after in both if before and after]
            lines.append(
                (
                    *(number, entry_rows[0].when),
                    *(sum(before is None for before, _ in both), sum(after is None for _, after in both)),
                    *(len(moved), sum(before > after for before, after in moved)),
                    *(sum(before < after for before, after in moved), entry_rows[0].labels_changed_all),
                    entry_rows[0].cause,
                )
            )
        layout = Layout(("entry",), ("when", "cause", "moved", "up", "down"), most=5)
        return {"history": Table(OVERVIEW_COLUMNS, tuple(lines), layout=layout), "log": log_table(self.rows)}


@dataclass(frozen=True)
class Entry(Result):
    """What one update changed: the table `runs` has those that moved, as in log.tsv.

    Attributes:
        entry: its number, from 1.
        when: UTC, ISO 8601, to the second.
        cause: one line for people.
        files: "added", "edited", "removed" -> files, sorted; those that were renamed as "before -> after".
        settings: name -> (before, after) of settings, parts of the grader's identity and packages; None where
            there is none.
        board: what moved.
        before, after: sha256 (hex) of the two leaderboards with their labels; `before` is None for the first
            one, and where what was before could not be read: then every run is new, and no label is listed.
    """

    entry: int
    when: str
    cause: str
    files: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, tuple[Any, Any]]
    board: BoardChange
    before: str | None
    after: str
    # No field: the entry's file has none.
    notes = ()

    def declare(self) -> dict[str, Table]:
        """`runs` that are new, gone or moved; every label that changed; the `means` of all runs."""
        runs = log_table(log_rows(self))
        layout = Layout(
            ("run",),
            ("rank.before", "rank.after", "because"),
            without=("entry", "when", "cause", "labels_changed.all"),
        )
        means = ((row.run, measure, *pair) for row in self.board.runs for measure, pair in row.means.items())
        return {
            "runs": replace(runs, layout=layout, caption=f"{self.entry}, {self.when}: {self.cause}"),
            "labels": label_table(self.board.labels),
            "means": Table(("run", "measure", "mean.before", "mean.after"), tuple(means)),
        }

    @property
    def facts(self) -> dict[str, Any]:
        """When it was, what was done, and between which leaderboards."""
        names = ("entry", "when", "cause", "files", "settings", "before", "after")
        return {name: getattr(self, name) for name in names}


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


def label_table(labels: Iterable[LabelChange]) -> Table:
    """A row a passage: its label before and after, and the items that it reaches now and did not, or did."""
    rows: Iterable[tuple[Value, ...]] = (
        (row.query_id, row.doc_id, row.before, row.after, " ".join(row.gained), " ".join(row.lost))
        for row in labels
    )
    return Table(LABEL_COLUMNS, tuple(rows))
