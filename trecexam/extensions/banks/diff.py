"""The difference of two banks on a track: items, labels, and ranks on each measure, with stored grades."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from converters.records import Item
from converters.run import Run
from trecexam.bank.model import Bank, item_digest
from trecexam.grades.diagnostics import human_notes
from trecexam.grades.evaluation import rubric_values
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.open_track import GraderView
from trecexam.grades.sheets import MISSING, Sheet
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
from trecexam.scores.values import TIE_DECIMALS, MeasureValues

Change = Literal["added", "removed", "edited", "retired", "un-retired", "importance", "renamed"]


class BankChange(NamedTuple):
    """An item whose text, importance or id differs between the banks.

    `change` is "edited" where the text, the kind or the answer key is another; "importance" and "renamed"
    where only the importance (or the weight) or the id is. `old` and `new` are None where the item is not
    there.
    """

    query_id: str
    item_id: str
    change: Change
    old: Item | None
    new: Item | None


class LabelChange(NamedTuple):
    """A passage whose label changed, or which reaches other items under the same label.

    `before` and `after` are None where the passage has no label: it is not in the pool or without a rating.
    `gained` and `lost` are the ids of the items that the passage reaches only after, or only before.
    """

    query_id: str
    doc_id: str
    before: int | None
    after: int | None
    gained: tuple[str, ...]
    lost: tuple[str, ...]


class RunChange(NamedTuple):
    """A run before and after, by a measure.

    Ranks are from 1; runs with equal means share the better rank; None without a mean. `move` is by how many
    ranks the run is better now. `labels_changed`: of its first passages (to the pool's depth), 0 if the run
    stays. `because` says why it moved, in a few words.
    """

    run: str
    measure: str
    rank_old: int | None
    rank_new: int | None
    move: int | None
    mean_old: float | None
    mean_new: float | None
    labels_changed: int = 0
    because: str = ""

    @property
    def moved(self) -> bool:
        """Whether the rank or the mean changed; how a sum was rounded is no change."""
        return self.rank_old != self.rank_new or _key(self.mean_old) != _key(self.mean_new)


class BankSide(NamedTuple):
    """One of the two banks, on the track's pool.

    Attributes:
        files: as they were named, with the track's other bank files.
        queries: the queries that means are over.
        items, retired_items: how many; the retired ones are not among the first.
        cells: (passage, item) pairs that can be graded, and not those of passages without a text.
        ungraded: (query_id, item_id) -> how many cells of the item have no grade.
        not_taken: what of the files was rejected, in words.
        own: whether it is the track's bank, which updates grade.
        cautions: what one must know to read its scores, one per line.
    """

    files: tuple[str, ...]
    queries: tuple[str, ...]
    items: int
    retired_items: int
    cells: int
    ungraded: Mapping[tuple[str, str], int]
    not_taken: tuple[str, ...]
    own: bool
    cautions: tuple[str, ...]

    @property
    def facts(self) -> dict[str, Any]:
        """What the bank has."""
        ungraded = [
            {"query_id": query_id, "item_id": item_id, "cells": cells}
            for (query_id, item_id), cells in self.ungraded.items()
        ]
        return {**dict(zip(self._fields[:7], self[:7], strict=True)), "ungraded": ungraded}


class MeasureDiff(NamedTuple):
    """The two leaderboards by one measure; `runs` are in the order of the new one.

    `kendall_tau` is tau-b over the runs on both, in -1..1; NaN where it is undefined: fewer than two runs, or
    all tied on one side.
    """

    measure: str
    runs: tuple[RunChange, ...]
    kendall_tau: float

    @property
    def reranked(self) -> int:
        """Runs on both leaderboards whose rank differs."""
        return sum(row.rank_old != row.rank_new for row in self.runs)

    @property
    def moved(self) -> int:
        """Runs on both leaderboards whose rank or mean differs."""
        return sum(row.moved for row in self.runs)


@dataclass(frozen=True)
class BankDiff(Result):
    """Differences between two banks, and between the track's leaderboards on them.

    Attributes:
        items: the items that differ.
        not_asked: those of them that this track's grader does not ask about, as (query_id, item_id).
        reached: (query_id, item_id) -> how many passages reach the item under the old and the new bank; of
            active items under one of them.
        labels: the passages whose label or reached items differ.
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
    labels: tuple[LabelChange, ...]
    measures: tuple[MeasureDiff, ...]
    in_both: tuple[MeasureDiff, ...] = ()
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def _declare(self) -> dict[str, Table]:
        """`runs`; `labels` and `items` that differ; `measures`; `in_both`, runs over common queries only."""
        return {
            "runs": _run_table(self.measures),
            "labels": Table(
                ("query_id", "doc_id", "label.old", "label.new", "gained", "lost"),
                tuple((*row[:4], " ".join(row.gained), " ".join(row.lost)) for row in self.labels),
            ),
            "items": Table(
                (
                    *("query_id", "item_id", "change", "reached.old", "reached.new", "ungraded"),
                    *("text.old", "text.new"),
                ),
                tuple(map(self._item_row, self.items)),
            ),
            "measures": Table(
                ("measure", "queries", "kendall_tau", "reranked", "moved", "runs"),
                tuple(
                    (by.measure, over, by.kendall_tau, by.reranked, by.moved, len(by.runs))
                    for over, measures in (("all", self.measures), ("both", self.in_both))
                    for by in measures
                ),
            ),
            "in_both": _run_table(self.in_both),
        }

    def _item_row(self, change: BankChange) -> tuple[Value, ...]:
        key = change.query_id, change.item_id
        return (
            *key,
            change.change,
            # Empty where the item is not graded.
            *self.reached.get(key, (None, None)),
            self.new.ungraded.get(key, 0) if change.new and not change.new.retired else None,
            change.old.text if change.old else None,
            change.new.text if change.new else None,
        )

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        """Each measure, the runs whose rank differs, the items that do, and the passages whose label does."""
        tables = self.tables
        runs, labels = _differing(tables["runs"], "rank"), _differing(tables["labels"], "label")
        return tables["measures"], runs, tables["items"], labels

    @property
    def facts(self) -> dict[str, Any]:
        """What the two banks have, and the items that this track's grader does not ask about."""
        not_asked = sorted(item_id for _, item_id in self.not_asked)
        return {"old": self.old.facts, "new": self.new.facts, "not_asked": not_asked}


def _run_table(measures: Iterable[MeasureDiff]) -> Table:
    """A row per measure and run: ranks (from 1; ties share the better one), change of rank, and means."""
    header = tuple(name.replace("_old", ".old").replace("_new", ".new") for name in RunChange._fields)
    return Table(header, tuple(row for by in measures for row in by.runs), layout=Layout(("run", "measure")))


def _differing(table: Table, what: str) -> Table:
    """The rows whose rank or label differs."""
    old, new = (table.header.index(f"{what}.{side}") for side in ("old", "new"))
    return replace(table, rows=tuple(row for row in table.rows if row[old] != row[new]))


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
    before, after = (
        _evaluated(loader, track, files, names) for track, files in zip(tracks, banks, strict=True)
    )
    changes = bank_changes(before.whole, after.whole)
    label_changes = tuple(_label_changes(before, after, changes))
    kinds = loader.needs.kinds
    queries = before.side.queries, after.side.queries
    common = [query_id for query_id in queries[0] if query_id in queries[1]]

    def compared(*query_ids: Collection[str]) -> tuple[MeasureDiff, ...]:
        return tuple(_compared(str(measure(name)), before, after, query_ids, label_changes) for name in names)

    items = {
        (query_id, printable(item.item_id))
        for track in tracks
        for query_id, items in track.bank.items.items()
        for item in items
    }
    reached = [
        Counter(
            (query_id, item_id)
            for query_id, passages in side.passages.items()
            for _, item_ids in passages.values()
            for item_id in item_ids
        )
        for side in (before, after)
    ]
    difference = BankDiff(
        before.side,
        after.side,
        changes,
        frozenset(
            change[:2]
            for change in changes
            if not any(item is not None and item.kind in kinds for item in (change.old, change.new))
        ),
        {key: (reached[0][key], reached[1][key]) for key in items},
        label_changes,
        compared(*queries),
        () if queries[0] == queries[1] else compared(common, common),
        () if replaced or len(track_files) < 2 else tuple(loader.folder.shown(path) for path in track_files),
    )
    return difference.with_notes(*human_notes(loader.load().override_summary()), *_summary(difference))


def _same(path: Path, other: Path) -> bool:
    with suppress(OSError):
        return path.samefile(other)
    return False


@dataclass(frozen=True)
class _Evaluated:
    """The track evaluated on one bank.

    `whole` has all items, including those that the grader does not use. `passages` is query_id -> doc_id ->
    the passage's label, and the ids of the items that it reaches.
    """

    side: BankSide
    whole: Bank
    track: GradedTrack
    values: MeasureValues
    passages: Mapping[str, Mapping[str, tuple[int, tuple[str, ...]]]]

    def means(self, name: str, query_ids: Collection[str]) -> dict[str, float | None]:
        """Return run -> its mean of a measure over these queries."""
        answered = {run: [q for q in query_ids if q in rows] for run, rows in self.track.runs.items()}
        average = self.track.config.scores.average
        board = leaderboard(self.values, [name], sorted(query_ids), answered, average)
        return {
            printable(row.run): row.scores[0].mean if row.scores[0].exists else None for row in board.rows
        }


def _evaluated(
    loader: GraderView, track: GradedTrack, files: Sequence[Path], measures: Sequence[str]
) -> _Evaluated:
    display_names = [track.folder.shown(path) for path in files]
    counts, scores = track.counts, track.config.scores
    side = BankSide(
        tuple(display_names),
        track.bank.query_ids,
        len(track.bank),
        track.bank.n_retired,
        counts.cells - counts.no_text_cells,
        {(item.query_id, item.item_id): cells for item, cells in _ungraded_items(track.sheets.values())},
        tuple(str(row) for row in track.rejected if row.file in (*display_names, "the bank")),
        any(_same(path, files[0]) for path in track.folder.bank(optional=True)),
        tuple(without_vital(measures, track.bank)),
    )
    passages = {}
    for query in track.ratings():
        item_ids = [printable(item.item_id) for item in track.bank.items[query.query_id]]
        reached = dict(zip(query.doc_ids, query.ratings >= scores.min_rating, strict=True))
        passages[query.query_id] = {
            doc_id: (label, tuple(item_ids[index] for index in np.flatnonzero(reached.get(doc_id, ()))))
            for doc_id, label in labels(query, scores.label, scores.min_rating, scores.min_answers).items()
        }
    whole = whole_bank(loader.folder, files)
    return _Evaluated(side, whole, track, rubric_values(track, measures), passages)


def bank_changes(old: Bank, new: Bank) -> tuple[BankChange, ...]:
    """The differences by query, in the new bank's order; then items that the new bank lacks.

    An item is the same one where its query and id are, else where its query and text are. What is
    retired in both, or added or removed as a retired item, makes no difference.
    """
    query_ids = {*old.items, *old.retired, *new.items, *new.retired}
    return tuple(change for query_id in sorted(query_ids) for change in _query_changes(query_id, old, new))


def _query_changes(query_id: str, old: Bank, new: Bank) -> Iterator[BankChange]:
    before, after = ([*bank.items.get(query_id, ()), *bank.retired.get(query_id, ())] for bank in (old, new))
    was_of: dict[int, Item] = {}
    keys: tuple[Callable[[Item], object], ...] = (lambda item: item.item_id, item_digest)
    for key in keys:
        left: dict[object, list[Item]] = {}
        for was in before:
            left.setdefault(key(was), []).append(was)
        for index, item in enumerate(after):
            if index not in was_of and left.get(key(item)):
                was_of[index] = left[key(item)].pop(0)
        before = [was for was in before if not any(was is each for each in was_of.values())]
    for index, item in enumerate(after):
        was_here = was_of.get(index)
        change = _change(was_here, item)
        if change is not None:
            yield BankChange(query_id, item.item_id, change, was_here, item)
    for was in before:
        if not was.retired:
            yield BankChange(query_id, was.item_id, "removed", was, None)


def _change(old: Item | None, new: Item) -> Change | None:
    if old is None:
        return None if new.retired else "added"
    if old.retired != new.retired:
        return "retired" if new.retired else "un-retired"
    if new.retired:
        return None
    if item_digest(old) != item_digest(new):
        return "edited"
    if (old.importance, old.weight) != (new.importance, new.weight):
        return "importance"
    return "renamed" if old.item_id != new.item_id else None


def _label_changes(
    before: _Evaluated, after: _Evaluated, changes: Iterable[BankChange]
) -> Iterator[LabelChange]:
    """The passages whose label or reached items differ, by query and passage."""
    new_ids = {
        (change.query_id, printable(change.old.item_id)): printable(change.new.item_id)
        for change in changes
        if change.old and change.new
    }
    for query_id in sorted(before.passages.keys() | after.passages.keys()):
        old, new = before.passages.get(query_id, {}), after.passages.get(query_id, {})
        for doc_id in sorted(old.keys() | new.keys()):
            (label_before, then), (label_after, now) = (
                passages.get(doc_id, (None, ())) for passages in (old, new)
            )
            then_now = {new_ids.get((query_id, item_id), item_id): item_id for item_id in then}
            gained = tuple(item_id for item_id in now if item_id not in then_now)
            lost = tuple(item_id for key, item_id in then_now.items() if key not in now)
            if label_before != label_after or gained or lost:
                yield LabelChange(query_id, doc_id, label_before, label_after, gained, lost)


def _compared(
    name: str,
    before: _Evaluated,
    after: _Evaluated,
    query_ids: Sequence[Collection[str]],
    label_changes: Iterable[LabelChange],
) -> MeasureDiff:
    """Compare the runs by a measure, over these queries of either bank."""
    either = {*query_ids[0], *query_ids[1]}
    changed = {(row.query_id, row.doc_id): row for row in label_changes if row.query_id in either}
    changed_queries = {query_id for query_id, _ in changed}
    means = before.means(name, query_ids[0]), after.means(name, query_ids[1])
    old_ranks, new_ranks = map(_ranks, means)
    depth = after.track.config.track.depth
    runs: dict[str, Run] = {printable(name): run for name, run in after.track.runs.items()}
    rows = []
    for run in sorted(means[1], key=lambda run: (new_ranks.get(run, math.inf), run)):
        rank_old, rank_new = old_ranks.get(run), new_ranks.get(run)
        move = None if rank_old is None or rank_new is None else rank_old - rank_new
        row = RunChange(run, name, rank_old, rank_new, move, means[0].get(run), means[1][run])
        if row.moved:
            differ = [
                changed[query_id, doc_id].before != changed[query_id, doc_id].after
                for query_id in changed_queries
                for doc_id in runs[run].ranking(query_id, depth)
                if (query_id, doc_id) in changed
            ]
            row = row._replace(labels_changed=sum(differ))
            row = row._replace(because=_because(row, len(differ) - sum(differ), depth))
        rows.append(row)
    return MeasureDiff(name, tuple(rows), _tau(*means))


def _because(row: RunChange, n_items: int, depth: int) -> str:
    """Say why a run moved; `n_items` of its first passages reach other items under the same label."""
    n_labels = row.labels_changed
    parts = [f"{plural(n_labels, 'label')} of its first {depth} changed"] if n_labels else []
    if n_items:
        parts.append(f"{plural(n_items, 'passage')} of its first {depth} with other items")
    if not parts and _key(row.mean_old) == _key(row.mean_new):
        parts.append("others moved")
    return "; ".join(parts)


def _key(mean: float | None) -> float:
    return -math.inf if mean is None else round(mean, TIE_DECIMALS)


def _column(means: Mapping[str, float | None], runs: Iterable[str]) -> Ranks:
    return Ranks.of(np.array([_key(means[run]) for run in runs])[:, None])


def _ranks(means: Mapping[str, float | None]) -> dict[str, int]:
    """Return run -> rank, from 1; runs with equal means share the better rank, and no mean is no rank."""
    above = _column(means, means).above[:, 0].tolist() if means else []
    return {run: n + 1 for (run, mean), n in zip(means.items(), above, strict=True) if mean is not None}


def _tau(before: Mapping[str, float | None], after: Mapping[str, float | None]) -> float:
    """Return Kendall's tau-b of two leaderboards over the runs on both; NaN if undefined."""
    shared = sorted(before.keys() & after.keys())
    if len(shared) < 2:
        return math.nan
    return float(kendall_tau(_column(before, shared), _column(after, shared))[0])


def _summary(diff: BankDiff) -> Iterator[str]:
    """Notes: which items differ, how many labels differ, and what is not graded yet."""
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
    if diff.not_asked:
        yield f"this track's grader does not use {plural(len(diff.not_asked), 'item')} of these"
    if diff.new.files[1:]:
        yield f"both sides include the track's other bank files: {', '.join(diff.new.files[1:])}"
    if diff.unused:
        yield f"OLD and NEW were compared as whole banks, without the track's files {', '.join(diff.unused)}"
    for (name, side), (_, other) in zip(sides, reversed(sides), strict=True):
        only = sorted(set(side.queries) - set(other.queries))
        if only:
            yield f"only {name} has {counted(only, 'query')}: each mean is over all queries of its bank"
    n_changed = sum(row.before != row.after for row in diff.labels)
    same = len(diff.labels) - n_changed
    more = f"; {plural(same, 'passage')} with other items under the same label" if same else ""
    yield f"{plural(n_changed, 'label')} differ{more}"
    for name, side in sides:
        if side.not_taken:
            others = f", and {len(side.not_taken) - 1:,} more" if len(side.not_taken) > 1 else ""
            yield f"{name}: rejected {side.not_taken[0]}{others}"
        yield from (f"{name}: {caution}" for caution in side.cautions)
        if side.ungraded:
            item_ids = [item_id for _, item_id in side.ungraded]
            verb = "has" if len(item_ids) == 1 else "have"
            hint = "" if side.own else f"put {name} into the track and "
            spelt = shorten_list(item_ids, SPELT, quote="")
            yield (
                f"{plural(len(item_ids), 'item')} of {name} {verb} cells without a grade, "
                f"{sum(side.ungraded.values()):,} of {side.cells:,} ({spelt}): "
                f"{hint}run `trecexam watch --once` first, or read the labels of {name} as a lower bound"
            )


def _ungraded_items(sheets: Iterable[Sheet]) -> Iterator[tuple[Item, int]]:
    """Yield each item with cells that could have a grade and have none, and how many."""
    for sheet in sheets:
        _, columns = sheet.where((sheet.flat() == MISSING) & sheet.gradable)
        missing = np.bincount(columns, minlength=len(sheet.items))
        yield from ((sheet.items[column], int(missing[column])) for column in missing.nonzero()[0])
