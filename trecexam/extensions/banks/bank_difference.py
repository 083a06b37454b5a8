"""The difference of two banks on a track: its items, labels, and ranks on each measure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from trecexam.extensions.banks.board_changes import BoardChange, LabelChange, LeaderboardSnapshot
from trecexam.extensions.banks.changes import BankChange
from trecexam.results.result import Result
from trecexam.results.table import Layout, Table, Value
from trecexam.results.text import SPELT, counted, plural, shorten_list
from trecexam.scores.rank_correlation import Ranks, kendall_tau
from trecexam.scores.values import TIE_DECIMALS

RUN_COLUMNS = (
    "run",
    "measure",
    "rank.old",
    "rank.new",
    "move",
    "mean.old",
    "mean.new",
    "labels_changed",
    "because",
)
LABEL_COLUMNS = ("query_id", "doc_id", "label.old", "label.new", "gained", "lost")
ITEM_COLUMNS = (
    "query_id",
    "item_id",
    "change",
    "reached.old",
    "reached.new",
    "ungraded",
    "text.old",
    "text.new",
)


@dataclass(frozen=True)
class BankSide:
    """One of the two banks, on the track's pool.

    Attributes:
        files: as they were named, with the track's other bank files.
        query_ids: the queries that means are over.
        n_items, n_retired: its items; the retired ones are not among the first.
        n_cells: (passage, item) pairs that can be graded, and not those of passages without a text.
        ungraded: (query_id, item_id) -> how many cells of the item have no grade.
        refused: what of the files was rejected, in words.
        own: whether it is the track's bank, which updates grade.
        cautions: what one must know to read its scores, one per line.
    """

    files: tuple[str, ...]
    query_ids: tuple[str, ...]
    n_items: int
    n_retired: int
    n_cells: int
    ungraded: Mapping[tuple[str, str], int] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    own: bool = False
    cautions: tuple[str, ...] = ()


@dataclass(frozen=True)
class MeasureDiff:
    """The two leaderboards by one measure.

    `kendall_tau` is tau-b over the runs on both, in -1..1; NaN where it is undefined: fewer than two runs, or
    all tied on one side.
    """

    measure: str
    board: BoardChange
    kendall_tau: float

    @property
    def reranked(self) -> int:
        """Runs on both leaderboards whose rank differs."""
        return sum(row.rank_before != row.rank_after for row in self.board.runs)

    @property
    def moved(self) -> int:
        """Runs on both leaderboards whose rank or mean differs."""
        return sum(row.moved for row in self.board.runs)


@dataclass(frozen=True)
class BankDiff(Result):
    """Differences between two banks, and between the track's leaderboards on them.

    Attributes:
        items: the items that differ.
        not_asked: those of them that this track's grader does not ask about, as (query_id, item_id).
        reached: (query_id, item_id) -> how many passages reach the item under the old and the new bank; of
            active items under one of them.
        measures: each measure by itself; means are over all queries of the respective bank.
        in_both: the same over the queries of both banks; () where these are the same queries.
        unused: bank files of the track that neither side has.
        notes: which items differ, how many labels do, what has no grade yet.
    """

    old: BankSide
    new: BankSide
    items: tuple[BankChange, ...]
    not_asked: frozenset[tuple[str, str]]
    reached: Mapping[tuple[str, str], tuple[int, int]]
    measures: tuple[MeasureDiff, ...]
    in_both: tuple[MeasureDiff, ...] = ()
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def _declare(self) -> dict[str, Table]:
        """`runs`; `labels` and `items` that differ; `measures`; `in_both`, runs over common queries only."""
        return {
            "runs": _run_table(self.measures),
            "labels": _labels_table(self),
            "items": Table(ITEM_COLUMNS, tuple(_item_row(self, change) for change in self.items)),
            "measures": _measures_table(self),
            "in_both": _run_table(self.in_both),
        }

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        """Each measure, the runs whose rank differs, the items that do, and the passages whose label does."""
        tables = self.tables
        runs, labels = _differing(tables["runs"], "rank"), _differing(tables["labels"], "label")
        return tables["measures"], runs, tables["items"], labels

    @property
    def facts(self) -> dict[str, Any]:
        """What the two banks have, and the items that this track's grader does not ask about."""
        not_asked = sorted(item_id for _, item_id in self.not_asked)
        return {"old": _side(self.old), "new": _side(self.new), "not_asked": not_asked}

    @property
    def labels(self) -> tuple[LabelChange, ...]:
        """The passages whose label or reached items differ."""
        return self.measures[0].board.labels if self.measures else ()


def _run_table(measures: Iterable[MeasureDiff]) -> Table:
    """A row per measure and run: ranks (from 1; ties share the better one), change of rank, and means."""
    return Table(RUN_COLUMNS, tuple(_run_rows(measures)), layout=Layout(("run", "measure")))


def _run_rows(measures: Iterable[MeasureDiff]) -> Iterator[tuple[Value, ...]]:
    for by in measures:
        for row in by.board.runs:
            ranks = row.rank_before, row.rank_after
            move = None if ranks[0] is None or ranks[1] is None else ranks[0] - ranks[1]
            means = row.mean_before, row.mean_after
            yield (row.run, by.measure, *ranks, move, *means, row.labels, row.because(by.board.depth))


def _labels_table(diff: BankDiff) -> Table:
    """A row per passage whose label or items differ: its labels, and items that only one bank has."""
    rows: Iterator[tuple[Value, ...]] = (
        (row.query_id, row.doc_id, row.before, row.after, " ".join(row.gained), " ".join(row.lost))
        for row in diff.labels
    )
    return Table(LABEL_COLUMNS, tuple(rows))


def _differing(table: Table, what: str) -> Table:
    """The rows whose rank or label differs."""
    old, new = (table.header.index(f"{what}.{side}") for side in ("old", "new"))
    return replace(table, rows=tuple(row for row in table.rows if row[old] != row[new]))


def _item_row(diff: BankDiff, change: BankChange) -> tuple[Value, ...]:
    """Return the row of an item that differs; `reached` is empty where the item is not graded."""
    key = change.query_id, change.item_id
    reached = diff.reached.get(key)
    return (
        *key,
        change.change,
        *(reached or (None, None)),
        diff.new.ungraded.get(key, 0) if change.new and not change.new.retired else None,
        change.old.text if change.old else None,
        change.new.text if change.new else None,
    )


def summary(diff: BankDiff) -> Iterator[str]:
    """Notes: which items differ, how many labels differ, and what is not graded yet."""
    yield _items(diff)
    if diff.not_asked:
        yield f"this track's grader does not use {plural(len(diff.not_asked), 'item')} of these"
    own_files = diff.new.files[1:]
    if own_files:
        yield f"both sides include the track's other bank files: {', '.join(own_files)}"
    if diff.unused:
        yield f"OLD and NEW were compared as whole banks, without the track's files {', '.join(diff.unused)}"
    yield from _queries(diff)
    changed = [row for row in diff.labels if row.before != row.after]
    only = len(diff.labels) - len(changed)
    yield f"{plural(len(changed), 'label')} differ" + (
        f"; {plural(only, 'passage')} with other items under the same label" if only else ""
    )
    for name, side in (("OLD", diff.old), ("NEW", diff.new)):
        if side.refused:
            more = f", and {len(side.refused) - 1:,} more" if len(side.refused) > 1 else ""
            yield f"{name}: rejected {side.refused[0]}{more}"
        yield from (f"{name}: {caution}" for caution in side.cautions)
        yield from _ungraded(name, side)


def _items(diff: BankDiff) -> str:
    sizes = [
        f"{name} {plural(side.n_items, 'item')} of {plural(len(side.query_ids), 'query')}"
        + (f" ({side.n_retired:,} more retired)" if side.n_retired else "")
        for name, side in (("OLD", diff.old), ("NEW", diff.new))
    ]
    done = "no item differs"
    if diff.items:
        kinds = [change.change for change in diff.items]
        counts = ", ".join(f"{kinds.count(kind):,} {_WORDS.get(kind, kind)}" for kind in dict.fromkeys(kinds))
        queries = list(dict.fromkeys(change.query_id for change in diff.items))
        done = f"items: {counts} in {counted(queries, 'query')}"
    return f"{done}; {', '.join(sizes)}"


_WORDS = {"importance": "of another importance"}


def _queries(diff: BankDiff) -> Iterator[str]:
    sides = [set(side.query_ids) for side in (diff.old, diff.new)]
    for name, query_ids in (("OLD", sides[0] - sides[1]), ("NEW", sides[1] - sides[0])):
        if query_ids:
            yield (
                f"only {name} has {counted(sorted(query_ids), 'query')}: "
                "each mean is over all queries of its bank"
            )


def _ungraded(name: str, side: BankSide) -> Iterator[str]:
    if not side.ungraded:
        return
    cells = sum(side.ungraded.values())
    keys = [item_id for _, item_id in side.ungraded]
    spelt = shorten_list(keys, SPELT, quote="")
    many = len(keys) != 1
    hint = "" if side.own else f"put {name} into the track and "
    yield (
        f"{plural(len(keys), 'item')} of {name} {'have' if many else 'has'} cells without a grade, "
        f"{cells:,} of {side.n_cells:,} ({spelt}): {hint}run `trecexam watch --once` first, or read the "
        f"labels of {name} as a lower bound"
    )


def _measures_table(diff: BankDiff) -> Table:
    """A row per measure, over all queries and over common queries: runs that move, and tau."""
    rows = (
        (by.measure, over, by.kendall_tau, by.reranked, by.moved, len(by.board.runs))
        for over, measures in (("all", diff.measures), ("both", diff.in_both))
        for by in measures
    )
    return Table(("measure", "queries", "kendall_tau", "reranked", "moved", "runs"), tuple(rows))


def _side(side: BankSide) -> dict[str, Any]:
    return {
        "files": list(side.files),
        "queries": list(side.query_ids),
        "items": side.n_items,
        "retired_items": side.n_retired,
        "cells": side.n_cells,
        "ungraded": [
            {"query_id": query_id, "item_id": item_id, "cells": cells}
            for (query_id, item_id), cells in side.ungraded.items()
        ],
        "not_taken": list(side.refused),
    }


def tau_of(before: LeaderboardSnapshot, after: LeaderboardSnapshot) -> float:
    """Return Kendall's tau-b of two leaderboards over the runs on both; NaN if undefined."""
    shared = sorted(before.means.keys() & after.means.keys())
    if len(shared) < 2:
        return math.nan
    means = (_means(side, shared) for side in (before, after))
    old_ranks, new_ranks = (Ranks.of(np.round(np.array(side)[:, None], TIE_DECIMALS)) for side in means)
    return float(kendall_tau(old_ranks, new_ranks)[0])


def _means(snapshot: LeaderboardSnapshot, runs: Sequence[str]) -> list[float]:
    means = (snapshot.means[run] for run in runs)
    return [-math.inf if mean is None else mean for mean in means]
