"""How the difference of two banks is shown: tables of runs, labels and items, and a summary in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from trecexam.bank.changes import BankChange
from trecexam.extensions.banks.bank_difference import BankDiff, BankSide, MeasureDiff
from trecexam.features.history.tables import label_table
from trecexam.tables.table import Table, Value
from trecexam.tables.text import SPELT, counted, plural, shorten_list

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


def run_table(diff: BankDiff, *, every: bool = False) -> Table:
    """A row a measure and run: its ranks (from 1, ties share the better one), how far it rises, its means.

    Args:
        every: runs that keep their rank too.
    """
    return Table(RUN_COLUMNS, tuple(_run_rows(diff.measures, every=every)))


def _run_rows(measures: Iterable[MeasureDiff], *, every: bool) -> Iterator[tuple[Value, ...]]:
    for by in measures:
        for row in by.board.runs:
            ranks = row.rank_before, row.rank_after
            if every or ranks[0] != ranks[1]:
                move = None if ranks[0] is None or ranks[1] is None else ranks[0] - ranks[1]
                means = row.means[by.measure]
                yield (row.run, by.measure, *ranks, move, *means, row.labels, row.because(by.board.depth))


def labels_table(diff: BankDiff, *, every: bool = False) -> Table:
    """A row a passage whose label differs: its labels, and the items that it reaches under one bank alone.

    Args:
        every: passages that reach other items under the same label too.
    """
    rows = (row for row in diff.labels if every or row.before != row.after)
    return Table(LABEL_COLUMNS, label_table(rows).rows)


def items_table(diff: BankDiff) -> Table:
    """A row an item that differs: how many passages reach it, cells without a grade in the new bank, texts.

    `reached` is empty where nobody is asked about the item.
    """
    return Table(ITEM_COLUMNS, tuple(_item_row(diff, change) for change in diff.items))


def _item_row(diff: BankDiff, change: BankChange) -> tuple[Value, ...]:
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
    """Lines for people: which items differ, what that does to labels and ranks, what has no grade yet."""
    yield _items(diff)
    if diff.not_asked:
        yield f"{plural(len(diff.not_asked), 'item')} of these this track's grader does not ask about"
    own_files = diff.new.files[1:]
    if own_files:
        yield f"on both sides with the track's other bank files: {', '.join(own_files)}"
    if diff.unused:
        yield f"OLD and NEW stand for the whole bank; the track's own files are {', '.join(diff.unused)}"
    yield from _queries(diff)
    changed = [row for row in diff.labels if row.before != row.after]
    only = len(diff.labels) - len(changed)
    yield f"{plural(len(changed), 'label')} differ" + (
        f"; {plural(only, 'passage')} with other items under the same label" if only else ""
    )
    for by in diff.measures:
        yield _moves(by)
    for by in diff.in_both:
        yield f"over the queries in both banks alone: {_moves(by)}"
    for name, side in (("OLD", diff.old), ("NEW", diff.new)):
        if side.refused:
            more = f", and {len(side.refused) - 1:,} more" if len(side.refused) > 1 else ""
            yield f"not taken of {name}: {side.refused[0]}{more}"
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
                f"{name} alone has {counted(sorted(query_ids), 'query')}: "
                "each mean is over all queries of its own bank"
            )


def _moves(by: MeasureDiff) -> str:
    runs = len(by.board.runs)
    only = by.moved - by.reranked
    removed, added = (sum(row.change == kind for row in by.board.runs) for kind in ("gone", "new"))
    if not runs:
        parts = ["no runs"]
    elif not by.moved + removed + added:
        parts = ["no run changes rank or mean"]
    elif by.reranked:
        verb = "changes" if by.reranked == 1 else "change"
        parts = [f"{by.reranked:,} of {plural(runs, 'run')} {verb} rank"]
        parts[0] += f", {only:,} more their mean alone" if only else ""
    else:
        parts = [f"no run changes rank, {only:,} of {runs:,} their mean"]
    parts += (f"{plural(n, 'run')} in {side} alone" for n, side in ((removed, "OLD"), (added, "NEW")) if n)
    if not math.isnan(by.kendall_tau):
        parts.append(f"Kendall's tau {by.kendall_tau:.4f}")
    return f"{by.measure}: {'; '.join(parts)}"


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


def as_json(diff: BankDiff) -> dict[str, Any]:
    """All there is to know, JSON-ready."""
    return {
        "old": _side(diff.old),
        "new": _side(diff.new),
        "items": items_table(diff).records(),
        "not_asked": sorted(item_id for _, item_id in diff.not_asked),
        "measures": _boards(diff.measures),
        "in_both": _boards(diff.in_both),
        "labels": [
            {**row, "gained": list(change.gained), "lost": list(change.lost)}
            for row, change in zip(labels_table(diff, every=True).records(), diff.labels, strict=True)
        ],
    }


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


def _boards(measures: Sequence[MeasureDiff]) -> list[dict[str, Any]]:
    return [
        {
            "measure": by.measure,
            "kendall_tau": by.kendall_tau,
            "reranked": by.reranked,
            "moved": by.moved,
            "runs": Table(RUN_COLUMNS, tuple(_run_rows([by], every=True))).records(),
        }
        for by in measures
    ]
