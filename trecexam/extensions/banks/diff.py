"""The difference of two banks on a track: items, labels, and ranks on each measure, with stored grades."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

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
from trecexam.results.table import Layout, Table
from trecexam.results.text import counted, plural, shorten_list
from trecexam.scores.leaderboard import Leaderboard
from trecexam.scores.rank_correlation import Ranks, kendall_tau
from trecexam.scores.values import TIE_DECIMALS

Change = Literal["added", "removed", "edited", "retired", "un-retired", "importance"]


class BankChange(NamedTuple):
    """An item that differs between the banks, matched by id.

    `change` is "edited" for a new text, kind or answer key; "importance" for only a new importance or weight.
    `old` and `new` are None for a missing item.
    """

    query_id: str
    item_id: str
    change: Change
    old: Item | None
    new: Item | None


class LabelChange(NamedTuple):
    """A passage with a changed label; None for a passage outside of the pool or without a rating."""

    query_id: str
    doc_id: str
    before: int | None
    after: int | None


class RunChange(NamedTuple):
    """A run before and after, by a measure.

    Ranks are from 1; runs with equal means share the better rank; None without a mean. `move` is the number
    of ranks gained.
    """

    run: str
    measure: str
    rank_old: int | None
    rank_new: int | None
    move: int | None
    mean_old: float | None
    mean_new: float | None


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


class MeasureDiff(NamedTuple):
    """The two leaderboards by one measure; `runs` are in the order of the new one.

    `kendall_tau` is tau-b, in -1..1; NaN where it is undefined: fewer than two runs, or all tied on one side.
    `reranked` counts runs with a different rank, `moved` runs with a different rank or mean, apart from
    rounding.
    """

    measure: str
    runs: tuple[RunChange, ...]
    kendall_tau: float
    reranked: int
    moved: int


@dataclass(frozen=True)
class BankDiff(Result):
    """Differences between two banks, and between the track's leaderboards on them.

    Attributes:
        items: the items that differ.
        labels: the passages whose label differs.
        measures: comparison by each measure; means are over all queries of the respective bank.
        notes: differing items, number of differing labels, and ungraded items.
    """

    old: BankSide
    new: BankSide
    items: tuple[BankChange, ...]
    labels: tuple[LabelChange, ...]
    measures: tuple[MeasureDiff, ...]
    notes: tuple[str, ...] = ()

    def _declare(self) -> dict[str, Table]:
        """`runs`, a row per measure and run; `labels` and `items` that differ; `measures`."""
        runs = [name.replace("_old", ".old").replace("_new", ".new") for name in RunChange._fields]
        changes = [row for by in self.measures for row in by.runs]
        items = [
            (
                *change[:3],
                self.new.ungraded.get(change.item_id, 0) if change.new and not change.new.retired else None,
                change.old and change.old.text,
                change.new and change.new.text,
            )
            for change in self.items
        ]
        measures = [(by.measure, by.kendall_tau, by.reranked, by.moved, len(by.runs)) for by in self.measures]
        return {
            "runs": Table(tuple(runs), tuple(changes), layout=Layout(("run", "measure"))),
            "labels": Table(("query_id", "doc_id", "label.old", "label.new"), self.labels),
            "items": Table(
                ("query_id", "item_id", "change", "ungraded", "text.old", "text.new"), tuple(items)
            ),
            "measures": Table(("measure", "kendall_tau", "reranked", "moved", "runs"), tuple(measures)),
        }

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        """Return measures, then runs, items and passages with a different rank, text or label."""
        tables = self.tables
        old, new = (tables["runs"].header.index(f"rank.{side}") for side in ("old", "new"))
        rows = tuple(row for row in tables["runs"].rows if row[old] != row[new])
        return tables["measures"], replace(tables["runs"], rows=rows), tables["items"], tables["labels"]

    @property
    def facts(self) -> dict[str, Any]:
        """Counts of both banks."""
        return {"old": self.old._asdict(), "new": self.new._asdict()}


def bank_diff(
    loader: GraderView,
    old: Path | str,
    new: Path | str,
    measures: Measures | None = None,
) -> BankDiff:
    """Compare two bank files by items, and by labels and ranks on stored grades."""
    old, new, names = Path(old), Path(new), names_of(measures)
    track_files = loader.folder.bank(optional=True)
    replaced = [path for path in track_files if _same(path, old) or _same(path, new)]
    other_files = [path for path in track_files if path not in replaced] if replaced else []
    banks = (old, *other_files), (new, *other_files)
    tracks = [loader.load(bank_files=files) for files in banks]
    if names is None:
        # The measures of the bank with fewer importances can be computed on both banks.
        names = list(min(tracks, key=lambda of: (of.bank.has_importance, of.bank.n_vital > 0)).measures)
    sides = [
        BankSide(
            tuple(track.folder.shown(path) for path in files),
            track.bank.query_ids,
            len(track.bank),
            track.bank.n_retired,
            _ungraded(track),
        )
        for track, files in zip(tracks, banks, strict=True)
    ]
    boards = [board_of(track, rubric_values(track, names)) for track in tracks]
    before, after = ({(row.query_id, row.doc_id): row.relevance for row in qrels(each)} for each in tracks)
    label_keys = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    difference = BankDiff(
        sides[0],
        sides[1],
        bank_changes(*(whole_bank(loader.folder, files) for files in banks)),
        tuple(LabelChange(*key, before.get(key), after.get(key)) for key in label_keys),
        tuple(_compared(boards, column) for column in range(len(names))),
    )
    cautions = [
        f"{name}: {caution}"
        for name, track, side in zip(("OLD", "NEW"), tracks, sides, strict=True)
        for caution in (*_rejected(track, side), *without_vital(names, track.bank))
    ]
    people = human_notes(tracks[1].override_summary())
    return difference.with_notes(*people, *_summary(difference, cautions))


def _same(path: Path, other: Path) -> bool:
    with suppress(OSError):
        return path.samefile(other)
    return False


def _rejected(track: GradedTrack, side: BankSide) -> Iterator[str]:
    """Yield the first rejected line of the bank's files, and the number of further rejected lines."""
    rows = [str(row) for row in track.rejected if row.file in (*side.files, "the bank")]
    if rows:
        yield f"rejected {rows[0]}" + (f", and {len(rows) - 1:,} more" if len(rows) > 1 else "")


def bank_changes(old: Bank, new: Bank) -> tuple[BankChange, ...]:
    """Return the differences by query, in the new bank's order; then items that the new bank lacks.

    Items retired in both banks, or added or removed while retired, are no difference.
    """
    changes = []
    for query_id in sorted({*old.items, *old.retired, *new.items, *new.retired}):
        before, after = (
            {item.item_id: item for of in (bank.items, bank.retired) for item in of.get(query_id, ())}
            for bank in (old, new)
        )
        for item_id, item in after.items():
            was = before.pop(item_id, None)
            change = _change(was, item)
            if change is not None:
                changes.append(BankChange(query_id, item_id, change, was, item))
        changes += (
            BankChange(query_id, item_id, "removed", was, None)
            for item_id, was in before.items()
            if not was.retired
        )
    return tuple(changes)


def _change(old: Item | None, new: Item) -> Change | None:
    if old is None:
        return None if new.retired else "added"
    if old.retired != new.retired:
        return "retired" if new.retired else "un-retired"
    if new.retired:
        return None
    if item_digest(old) != item_digest(new):
        return "edited"
    return None if (old.importance, old.weight) == (new.importance, new.weight) else "importance"


def _compared(boards: Sequence[Leaderboard], column: int) -> MeasureDiff:
    """Compare the runs by the measure of a column."""
    scores = [{row.run: row.scores[column] for row in board.rows} for board in boards]
    means = [{run: score.mean for run, score in side.items() if score.exists} for side in scores]
    keys = [{run: round(mean, TIE_DECIMALS) for run, mean in side.items()} for side in means]
    # Runs with equal means share the better rank.
    old, new = (
        {run: 1 + sum(other > key for other in side.values()) for run, key in side.items()} for side in keys
    )
    runs = sorted(scores[1], key=lambda run: (new.get(run, math.inf), run))
    moves = [old[run] - new[run] if run in old and run in new else None for run in runs]
    sides = [Ranks.of(np.array([side.get(run, -math.inf) for run in runs])[:, None]) for side in keys]
    name = boards[1].measures[column]
    return MeasureDiff(
        name,
        tuple(
            RunChange(run, name, old.get(run), new.get(run), move, means[0].get(run), means[1].get(run))
            for run, move in zip(runs, moves, strict=True)
        ),
        float(kendall_tau(*sides)[0]) if len(runs) > 1 else math.nan,
        sum(old.get(run) != new.get(run) for run in runs),
        sum(old.get(run) != new.get(run) or keys[0].get(run) != keys[1].get(run) for run in runs),
    )


def _summary(diff: BankDiff, cautions: Sequence[str]) -> Iterator[str]:
    """Yield notes: differing items, number of differing labels, and ungraded items."""
    sides = (("OLD", diff.old), ("NEW", diff.new))
    sizes = [
        f"{name} {plural(side.items, 'item')} of {plural(len(side.queries), 'query')}"
        + (f" ({side.retired_items:,} more retired)" if side.retired_items else "")
        for name, side in sides
    ]
    done = "no item differs"
    if diff.items:
        kinds = [change.change for change in diff.items]
        words = {"importance": "of another importance"}
        counts = ", ".join(f"{kinds.count(kind):,} {words.get(kind, kind)}" for kind in dict.fromkeys(kinds))
        queries = list(dict.fromkeys(change.query_id for change in diff.items))
        done = f"items: {counts} in {counted(queries, 'query')}"
    yield f"{done}; {', '.join(sizes)}"
    if diff.new.files[1:]:
        yield f"both sides include the track's other bank files: {', '.join(diff.new.files[1:])}"
    for (name, side), (_, other) in zip(sides, reversed(sides), strict=True):
        only = sorted(set(side.queries) - set(other.queries))
        if only:
            yield f"only {name} has {counted(only, 'query')}: each mean is over all queries of its bank"
    yield f"{plural(len(diff.labels), 'label')} differ"
    yield from cautions
    for name, side in sides:
        if side.ungraded:
            spelt = shorten_list([*side.ungraded], 3, quote="")
            yield (
                f"{name} has {plural(sum(side.ungraded.values()), 'cell')} without a grade, of "
                f"{plural(len(side.ungraded), 'item')} ({spelt}): run `trecexam watch --once` with {name} in "
                f"the track first, or read the labels of {name} as a lower bound"
            )


def _ungraded(track: GradedTrack) -> dict[str, int]:
    """Return item_id -> number of gradable but ungraded cells."""
    cells = Counter[str]()
    for sheet in track.sheets.values():
        _, columns = sheet.where((sheet.flat() == MISSING) & sheet.gradable)
        cells.update(sheet.items[column].item_id for column in columns.tolist())
    return dict(cells)
