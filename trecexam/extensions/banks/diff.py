"""The difference of two banks on a track: items, labels, and ranks on each measure, with stored grades."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from converters.records import Item
from trecexam.bank.model import Bank, item_digest
from trecexam.features.exporting.exports import qrels
from trecexam.grades.diagnostics import human_notes
from trecexam.grades.evaluation import board_of, rubric_values
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.open_track import GraderView
from trecexam.grades.sheets import MISSING
from trecexam.inputs.inputs import whole_bank
from trecexam.inputs.measures import without_vital
from trecexam.inputs.track_graders import Measures, names_of
from trecexam.results.result import Result
from trecexam.results.table import Layout, Table, Value
from trecexam.results.text import counted, plural, shorten_list
from trecexam.scores.leaderboard import Leaderboard
from trecexam.scores.rank_correlation import tau_b_columns
from trecexam.scores.values import TIE_DECIMALS

Row = tuple[Value, ...]
_LABELS = ("query_id", "doc_id", "label.old", "label.new")
_MEASURES = ("measure", "kendall_tau", "reranked", "moved", "runs")
_RUNS = ("run", "measure", "rank.old", "rank.new", "move", "mean.old", "mean.new")


class BankChange(NamedTuple):
    """An item that differs between the banks, matched by id.

    `change` is "added", "removed", "retired" or "un-retired"; "edited" for a new text, kind or answer key;
    "importance" for only a new importance or weight.
    `old` and `new` are None for a missing item.
    """

    query_id: str
    item_id: str
    change: str
    old: Item | None
    new: Item | None


class BankSide(NamedTuple):
    """A bank on the track's pool.

    Attributes:
        files: the given files, with the track's other bank files.
        queries: the queries that means are over.
        items, retired_items: counts; retired items are not in `items`.
        ungraded: item_id -> how many of its cells have no grade.
    """

    files: tuple[str, ...]
    queries: tuple[str, ...]
    items: int
    retired_items: int
    ungraded: Mapping[str, int]


@dataclass(frozen=True)
class BankDiff(Result):
    """Differences between two banks, and between the track's leaderboards on them.

    Ranks are from 1; runs with equal means share the better rank; None without a mean. Means are over all
    queries of the respective bank.

    Attributes:
        items: the items that differ.
        labels: `query_id`, `doc_id`, `label.old`, `label.new` of passages whose label differs; None for a
            passage outside of the pool or without a rating.
        measures: a row per measure: `kendall_tau`, tau-b in -1..1, NaN where it is undefined (fewer than two
            runs, or all tied on one side); `reranked`, the number of runs with a different rank; `moved`,
            with a different rank or mean, apart from rounding; `runs`, of all runs.
        runs: `rank.old`, `rank.new`, `move` (ranks gained), `mean.old` and `mean.new` of each run by each
            measure, in the order of the new leaderboard.
        notes: differing items, number of differing labels, and ungraded items.
    """

    old: BankSide
    new: BankSide
    items: tuple[BankChange, ...]
    labels: Table
    measures: Table
    runs: Table
    notes: tuple[str, ...] = ()

    def _declare(self) -> dict[str, Table]:
        """`runs`, a row per measure and run; `labels` and `items` that differ; `measures`."""
        rows = (
            (
                *change[:3],
                self.new.ungraded.get(change.item_id, 0) if change.new and not change.new.retired else None,
                change.old and change.old.text,
                change.new and change.new.text,
            )
            for change in self.items
        )
        items = Table(("query_id", "item_id", "change", "ungraded", "text.old", "text.new"), tuple(rows))
        return {"runs": self.runs, "labels": self.labels, "items": items, "measures": self.measures}

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        """Return measures, then runs, items and passages with a different rank, text or label."""
        ranks = zip(self.runs.rows, self.runs["rank.old"], self.runs["rank.new"], strict=True)
        reranked = tuple(row for row, old, new in ranks if old != new)
        return self.measures, replace(self.runs, rows=reranked), self.tables["items"], self.labels

    @property
    def facts(self) -> dict[str, Any]:
        """Counts of both banks."""
        return {"old": self.old._asdict(), "new": self.new._asdict()}


def bank_diff(loader: GraderView, old: Path | str, new: Path | str, measures: Measures | None) -> BankDiff:
    """Compare two bank files by items, and by labels and ranks on stored grades."""
    given, names = (Path(old), Path(new)), names_of(measures)
    resolved = {path.resolve() for path in given}
    track_files = loader.folder.bank(optional=True)
    other_files = [path for path in track_files if path.resolve() not in resolved]
    if len(other_files) == len(track_files):
        # Neither is a file of the track: each is a whole bank.
        other_files = []
    files = [(path, *other_files) for path in given]
    tracks = [loader.load(bank_files=paths) for paths in files]
    if names is None:
        # The measures of the bank with fewer importances can be computed on both banks.
        names = list(min(tracks, key=lambda of: (of.bank.has_importance, of.bank.n_vital > 0)).measures)
    old_side, new_side = sides = [_side(*each) for each in zip(tracks, files, strict=True)]
    before, after = ({(row.query_id, row.doc_id): row.relevance for row in qrels(each)} for each in tracks)
    labels = [(*key, before.get(key), after.get(key)) for key in sorted({*before, *after})]
    compared = [
        _compared(name, [board_of(track, rubric_values(track, [name])) for track in tracks]) for name in names
    ]
    difference = BankDiff(
        old_side,
        new_side,
        bank_changes(*(whole_bank(loader.folder, paths) for paths in files)),
        Table(_LABELS, tuple(row for row in labels if row[2] != row[3])),
        Table(_MEASURES, tuple(row for row, _ in compared)),
        Table(_RUNS, tuple(row for _, rows in compared for row in rows), layout=Layout(("run", "measure"))),
    )
    cautions = [
        f"{name}: {caution}"
        for name, track, side in zip(("OLD", "NEW"), tracks, sides, strict=True)
        for caution in (*_rejected(track, side), *without_vital(names, track.bank))
    ]
    return difference.with_notes(*human_notes(tracks[1].override_summary()), *_summary(difference, cautions))


def _side(track: GradedTrack, files: Sequence[Path]) -> BankSide:
    ungraded = Counter[str]()
    for sheet in track.sheets.values():
        _, columns = sheet.where((sheet.flat() == MISSING) & sheet.gradable)
        ungraded.update(sheet.items[column].item_id for column in columns.tolist())
    names = tuple(track.folder.shown(path) for path in files)
    return BankSide(names, track.bank.query_ids, len(track.bank), track.bank.n_retired, dict(ungraded))


def _rejected(track: GradedTrack, side: BankSide) -> Iterator[str]:
    """Yield the first rejected line of the bank's files, and the number of further rejected lines."""
    rows = [str(row) for row in track.rejected if row.file in (*side.files, "the bank")]
    if rows:
        yield f"rejected {rows[0]}" + (f", and {len(rows) - 1:,} more" if len(rows) > 1 else "")


def bank_changes(old: Bank, new: Bank) -> tuple[BankChange, ...]:
    """Return the differences by query, in the new bank's order; then items that the new bank lacks.

    Items retired in both banks, or added or removed while retired, are no difference.
    """
    before, after = (
        {(item.query_id, item.item_id): item for part in parts for items in part.values() for item in items}
        for parts in ((old.items, old.retired), (new.items, new.retired))
    )
    changes = (
        BankChange(*key, change, before.get(key), after.get(key))
        for key in {**after, **before}
        if (change := _change(before.get(key), after.get(key)))
    )
    return tuple(sorted(changes, key=lambda row: row.query_id))


def _change(old: Item | None, new: Item | None) -> str | None:
    if old is None or new is None:
        item = old or new
        return None if item is None or item.retired else "added" if old is None else "removed"
    if old.retired != new.retired:
        return "retired" if new.retired else "un-retired"
    if new.retired:
        return None
    if item_digest(old) != item_digest(new):
        return "edited"
    return None if (old.importance, old.weight) == (new.importance, new.weight) else "importance"


def _compared(name: str, boards: Sequence[Leaderboard]) -> tuple[Row, list[Row]]:
    """Return the row of a measure, and the rows of its runs, from two leaderboards of this measure."""
    old, new = (
        {
            row.run: (rank, row.scores[0].mean if rank else None)
            for row, rank in zip(board.rows, board.ranks, strict=True)
        }
        for board in boards
    )
    rows, ranks, moved = list[Row](), list[tuple[float, float]](), 0
    for run, (new_rank, new_mean) in new.items():
        old_rank, old_mean = old.get(run, (None, None))
        move = old_rank - new_rank if old_rank and new_rank else None
        rows.append((run, name, old_rank, new_rank, move, old_mean, new_mean))
        # A run without a mean is below all others.
        ranks.append((old_rank or math.inf, new_rank or math.inf))
        moved += old_rank != new_rank or round((old_mean or 0) - (new_mean or 0), TIE_DECIMALS) != 0
    columns = -np.array(ranks).reshape(-1, 2)
    tau = float(tau_b_columns(columns[:, :1], columns[:, 1:])[0]) if len(new) > 1 else math.nan
    return (name, tau, sum(before != after for before, after in ranks), moved, len(new)), rows


def _summary(diff: BankDiff, cautions: Sequence[str]) -> Iterator[str]:
    """Yield notes: differing items, number of differing labels, and ungraded items."""
    sides = (("OLD", diff.old, diff.new), ("NEW", diff.new, diff.old))
    sizes = [
        f"{name} {plural(side.items, 'item')} of {plural(len(side.queries), 'query')}"
        + (f" ({side.retired_items:,} more retired)" if side.retired_items else "")
        for name, side, _ in sides
    ]
    counts = ", ".join(
        f"{number:,} {'of another importance' if change == 'importance' else change}"
        for change, number in Counter(row.change for row in diff.items).items()
    )
    queries = list(dict.fromkeys(row.query_id for row in diff.items))
    done = f"items: {counts} in {counted(queries, 'query')}" if queries else "no item differs"
    yield f"{done}; {', '.join(sizes)}"
    if diff.new.files[1:]:
        yield f"both sides include the track's other bank files: {', '.join(diff.new.files[1:])}"
    for name, side, other in sides:
        only = sorted(set(side.queries) - set(other.queries))
        if only:
            yield f"only {name} has {counted(only, 'query')}: each mean is over all queries of its bank"
    yield f"{plural(len(diff.labels), 'label')} differ"
    yield from cautions
    for name, side, _ in sides:
        if side.ungraded:
            spelt = shorten_list([*side.ungraded], 3, quote="")
            yield (
                f"{name} has {plural(sum(side.ungraded.values()), 'cell')} without a grade, of "
                f"{plural(len(side.ungraded), 'item')} ({spelt}): run `trecexam watch --once` with {name} in "
                f"the track first, or read the labels of {name} as a lower bound"
            )
