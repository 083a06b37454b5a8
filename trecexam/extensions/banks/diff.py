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
from trecexam.grades.diagnostics import human_notes
from trecexam.grades.evaluation import rubric_values
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.open_track import GraderView
from trecexam.grades.sheets import MISSING
from trecexam.inputs.inputs import whole_bank
from trecexam.inputs.measures import without_vital
from trecexam.inputs.track_graders import Measures, names_of
from trecexam.results.result import Result
from trecexam.results.table import Layout, Table, Value
from trecexam.results.terminal import printable
from trecexam.results.text import SPELT, counted, plural, shorten_list
from trecexam.scores.labels import labels
from trecexam.scores.leaderboard import leaderboard
from trecexam.scores.measures import measure
from trecexam.scores.rank_correlation import Ranks, kendall_tau
from trecexam.scores.values import TIE_DECIMALS

Change = Literal["added", "removed", "edited", "retired", "un-retired", "importance"]


class BankChange(NamedTuple):
    """An item that differs between the banks, known by its id.

    `change` is "edited" where the text, the kind or the answer key is another; "importance" where only the
    importance or the weight is. `old` and `new` are None where the item is not there.
    """

    query_id: str
    item_id: str
    change: Change
    old: Item | None
    new: Item | None


class LabelChange(NamedTuple):
    """A passage whose label changed; None where it has none: it is not in the pool or without a rating."""

    query_id: str
    doc_id: str
    before: int | None
    after: int | None


class RunChange(NamedTuple):
    """A run before and after, by a measure.

    Ranks are from 1; runs with equal means share the better rank; None without a mean. `move` is by how many
    ranks the run is better now.
    """

    run: str
    measure: str
    rank_old: int | None
    rank_new: int | None
    move: int | None
    mean_old: float | None
    mean_new: float | None


class BankSide(NamedTuple):
    """One of the two banks, on the track's pool.

    Attributes:
        files: as they were named, with the track's other bank files.
        queries: the queries that means are over.
        items, retired_items: how many; the retired ones are not among the first.
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
    """

    measure: str
    runs: tuple[RunChange, ...]
    kendall_tau: float

    @property
    def reranked(self) -> int:
        """Runs whose rank differs."""
        return sum(row.rank_old != row.rank_new for row in self.runs)

    @property
    def moved(self) -> int:
        """Runs whose rank or mean differs; how a sum was rounded is no difference."""
        return sum(
            row.rank_old != row.rank_new or _key(row.mean_old) != _key(row.mean_new) for row in self.runs
        )


@dataclass(frozen=True)
class BankDiff(Result):
    """Differences between two banks, and between the track's leaderboards on them.

    Attributes:
        items: the items that differ.
        labels: the passages whose label differs.
        measures: each measure by itself; means are over all queries of the respective bank.
        notes: which items differ, how many labels do, what has no grade yet.
    """

    old: BankSide
    new: BankSide
    items: tuple[BankChange, ...]
    labels: tuple[LabelChange, ...]
    measures: tuple[MeasureDiff, ...]
    notes: tuple[str, ...] = ()

    def _declare(self) -> dict[str, Table]:
        """`runs`, a row per measure and run; `labels` and `items` that differ; `measures`."""
        run_columns = tuple(
            name.replace("_old", ".old").replace("_new", ".new") for name in RunChange._fields
        )
        return {
            "runs": Table(
                run_columns,
                tuple(row for by in self.measures for row in by.runs),
                layout=Layout(("run", "measure")),
            ),
            "labels": Table(("query_id", "doc_id", "label.old", "label.new"), self.labels),
            "items": Table(
                ("query_id", "item_id", "change", "ungraded", "text.old", "text.new"),
                tuple(map(self._item_row, self.items)),
            ),
            "measures": Table(
                ("measure", "kendall_tau", "reranked", "moved", "runs"),
                tuple(
                    (by.measure, by.kendall_tau, by.reranked, by.moved, len(by.runs)) for by in self.measures
                ),
            ),
        }

    def _item_row(self, change: BankChange) -> tuple[Value, ...]:
        return (
            *change[:3],
            self.new.ungraded.get(change.item_id, 0) if change.new and not change.new.retired else None,
            change.old.text if change.old else None,
            change.new.text if change.new else None,
        )

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        """Each measure, the runs whose rank differs, the items that do, and the passages whose label does."""
        tables = self.tables
        old, new = (tables["runs"].header.index(f"rank.{side}") for side in ("old", "new"))
        rows = tuple(row for row in tables["runs"].rows if row[old] != row[new])
        return tables["measures"], replace(tables["runs"], rows=rows), tables["items"], tables["labels"]

    @property
    def facts(self) -> dict[str, Any]:
        """What the two banks have."""
        return {"old": self.old._asdict(), "new": self.new._asdict()}


def bank_diff(
    loader: GraderView,
    old: Path | str,
    new: Path | str,
    measures: Measures | None = None,
) -> BankDiff:
    """Items, labels and ranks that differ between two bank files, with stored grades."""
    old, new, names = Path(old), Path(new), names_of(measures)
    track_files = loader.folder.bank(optional=True)
    replaced = [path for path in track_files if _same(path, old) or _same(path, new)]
    other_files = [path for path in track_files if path not in replaced] if replaced else []
    banks = (old, *other_files), (new, *other_files)
    tracks = [loader.load(bank_files=files) for files in banks]
    if names is None:
        # The measures of the bank with fewer importances can be computed on both banks.
        names = list(min(tracks, key=lambda of: (of.bank.has_importance, of.bank.n_vital > 0)).measures)
    sides = [_side(track, files) for track, files in zip(tracks, banks, strict=True)]
    means = [_means(track, names) for track in tracks]
    difference = BankDiff(
        sides[0],
        sides[1],
        bank_changes(*(whole_bank(loader.folder, files) for files in banks)),
        tuple(_label_changes(*map(_labels, tracks))),
        tuple(_compared(name, *(side[name] for side in means)) for name in means[0]),
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


def _side(track: GradedTrack, files: Sequence[Path]) -> BankSide:
    return BankSide(
        tuple(track.folder.shown(path) for path in files),
        track.bank.query_ids,
        len(track.bank),
        track.bank.n_retired,
        _ungraded(track),
    )


def _rejected(track: GradedTrack, side: BankSide) -> Iterator[str]:
    """Yield what of the bank's files was rejected: the first, and how many more."""
    rows = [str(row) for row in track.rejected if row.file in (*side.files, "the bank")]
    if rows:
        yield f"rejected {rows[0]}" + (f", and {len(rows) - 1:,} more" if len(rows) > 1 else "")


def _means(track: GradedTrack, names: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """Return measure -> run -> mean over the bank's queries."""
    query_ids = track.bank.query_ids
    answered = {run: [q for q in query_ids if q in rows] for run, rows in track.runs.items()}
    values, average = rubric_values(track, names), track.config.scores.average
    rows = leaderboard(values, names, query_ids, answered, average).rows
    return {
        str(measure(name)): {
            printable(row.run): row.scores[at].mean if row.scores[at].exists else None for row in rows
        }
        for at, name in enumerate(names)
    }


def _labels(track: GradedTrack) -> dict[tuple[str, str], int]:
    scores = track.config.scores
    return {
        (query.query_id, doc_id): label
        for query in track.ratings()
        for doc_id, label in labels(query, scores.label, scores.min_rating, scores.min_answers).items()
    }


def _label_changes(
    before: Mapping[tuple[str, str], int], after: Mapping[tuple[str, str], int]
) -> Iterator[LabelChange]:
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            yield LabelChange(*key, before.get(key), after.get(key))


def bank_changes(old: Bank, new: Bank) -> tuple[BankChange, ...]:
    """Return the differences by query, in the new bank's order; then items that the new bank lacks.

    What is retired in both, or added or removed as a retired item, makes no difference.
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


def _compared(name: str, old: Mapping[str, float | None], new: Mapping[str, float | None]) -> MeasureDiff:
    """Compare the runs by a measure."""
    old_ranks, new_ranks = _ranks(old), _ranks(new)
    rows = []
    for run in sorted(new, key=lambda run: (new_ranks.get(run, math.inf), run)):
        before, after = old_ranks.get(run), new_ranks.get(run)
        move = None if before is None or after is None else before - after
        rows.append(RunChange(run, name, before, after, move, old.get(run), new[run]))
    sides = [Ranks.of(np.array([_key(of.get(run)) for run in sorted(new)])[:, None]) for of in (old, new)]
    return MeasureDiff(name, tuple(rows), float(kendall_tau(*sides)[0]) if len(new) > 1 else math.nan)


def _key(mean: float | None) -> float:
    return -math.inf if mean is None else round(mean, TIE_DECIMALS)


def _ranks(means: Mapping[str, float | None]) -> dict[str, int]:
    """Return run -> rank, from 1; runs with equal means share the better rank, and no mean is no rank."""
    keys = {run: _key(mean) for run, mean in means.items() if mean is not None}
    return {run: 1 + sum(other > key for other in keys.values()) for run, key in keys.items()}


def _summary(diff: BankDiff, cautions: Sequence[str]) -> Iterator[str]:
    """Yield notes: which items differ, how many labels differ, and what is not graded yet."""
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
            spelt = shorten_list([*side.ungraded], SPELT, quote="")
            yield (
                f"{name} has {plural(sum(side.ungraded.values()), 'cell')} without a grade, of "
                f"{plural(len(side.ungraded), 'item')} ({spelt}): run `trecexam watch --once` with {name} in "
                f"the track first, or read the labels of {name} as a lower bound"
            )


def _ungraded(track: GradedTrack) -> dict[str, int]:
    """Return item_id -> how many of its cells could have a grade and have none."""
    cells = Counter[str]()
    for sheet in track.sheets.values():
        _, columns = sheet.where((sheet.flat() == MISSING) & sheet.gradable)
        cells.update(sheet.items[column].item_id for column in columns.tolist())
    return dict(cells)
