"""Evaluates a track's runs on two banks with stored grades; grades and writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from converters.run import Run
from trecexam.bank import Bank
from trecexam.config import TrackConfig
from trecexam.extensions.banks.bank_difference import (
    BankDiff,
    BankSide,
    MeasureDiff,
    summary,
    tau_of,
)
from trecexam.extensions.banks.board_changes import (
    LeaderboardSnapshot,
    QuerySnapshot,
    board_change,
    query_states,
)
from trecexam.extensions.banks.changes import BankChange, bank_changes
from trecexam.grades.diagnostics import human_notes
from trecexam.grades.evaluation import rubric_values
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.open_track import GraderView
from trecexam.grades.sheets import ungraded_items
from trecexam.inputs.inputs import whole_bank
from trecexam.inputs.measures import without_vital
from trecexam.inputs.track_graders import Measures, names_of
from trecexam.results.terminal import printable
from trecexam.scores.leaderboard import Average, leaderboard
from trecexam.scores.measures import measure
from trecexam.scores.values import MeasureValues


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
    former, later = (
        _evaluated(loader, track, files, names) for track, files in zip(tracks, banks, strict=True)
    )
    sides = former, later
    changes = bank_changes(sides[0].whole, sides[1].whole)
    kinds = loader.needs.kinds
    queries = sides[0].side.query_ids, sides[1].side.query_ids
    common = sorted(set(queries[0]) & set(queries[1]))
    printed = [str(measure(name)) for name in names]
    difference = BankDiff(
        sides[0].side,
        sides[1].side,
        changes,
        frozenset(change[:2] for change in changes if not _asked(change, kinds)),
        _reached(*sides),
        _compared(loader.config, printed, sides, queries),
        () if queries[0] == queries[1] else _compared(loader.config, printed, sides, (common, common)),
        () if replaced or len(track_files) < 2 else tuple(loader.folder.shown(path) for path in track_files),
    )
    return difference.with_notes(*human_notes(loader.load().override_summary()), *summary(difference))


def _reached(former: _Evaluated, later: _Evaluated) -> dict[tuple[str, str], tuple[int, int]]:
    """(query_id, item_id) -> how many passages reach the item on either side."""
    counts = [
        {
            (query_id, item.item_id): sum(reached >> bit & 1 for _, reached in query.passages.values())
            for query_id, query in side.queries.items()
            for bit, item in enumerate(query.items)
        }
        for side in (former, later)
    ]
    before, after = counts
    return {key: (before.get(key, 0), after.get(key, 0)) for key in before.keys() | after.keys()}


def _asked(change: BankChange, kinds: Collection[str]) -> bool:
    return any(item is not None and item.kind in kinds for item in (change.old, change.new))


@dataclass(frozen=True)
class _Evaluated:
    """The track evaluated on one bank. `whole` has all items, including those that the grader does not "
    "use."""

    side: BankSide
    whole: Bank
    runs: Mapping[str, Run]
    values: MeasureValues
    queries: Mapping[str, QuerySnapshot]

    def snapshot(self, measure: str, query_ids: Collection[str], average: Average) -> LeaderboardSnapshot:
        """Ranks and means of the runs by one measure over these queries."""
        answered = {name: [q for q in query_ids if q in run] for name, run in self.runs.items()}
        board = leaderboard(self.values, [measure], sorted(query_ids), answered, average)
        means = {
            printable(row.run): row.scores[0].mean if row.scores[0].exists else None for row in board.rows
        }
        return LeaderboardSnapshot(means, {q: self.queries[q] for q in query_ids if q in self.queries})


def _evaluated(
    loader: GraderView, track: GradedTrack, files: Sequence[Path], measures: Sequence[str]
) -> _Evaluated:
    display_names = [track.folder.shown(path) for path in files]
    counts = track.counts
    side = BankSide(
        tuple(display_names),
        track.bank.query_ids,
        len(track.bank),
        track.bank.n_retired,
        counts.cells - counts.no_text_cells,
        {(item.query_id, item.item_id): cells for item, cells in ungraded_items(track.sheets.values())},
        tuple(str(row) for row in track.rejected if row.file in (*display_names, "the bank")),
        any(_same(path, files[0]) for path in track.folder.bank(optional=True)),
        tuple(without_vital(measures, track.bank)),
    )
    return _Evaluated(
        side,
        whole_bank(loader.folder, files),
        track.runs,
        rubric_values(track, measures),
        query_states(track),
    )


def _compared(
    config: TrackConfig,
    measures: Sequence[str],
    sides: tuple[_Evaluated, _Evaluated],
    query_ids: tuple[Collection[str], Collection[str]],
) -> tuple[MeasureDiff, ...]:
    scores, depth = config.scores, config.track.depth
    runs = {printable(name): run for name, run in sides[1].runs.items()}
    diffs = []
    for name in measures:
        before, after = (
            side.snapshot(name, queries, scores.average)
            for side, queries in zip(sides, query_ids, strict=True)
        )
        board = board_change(
            before,
            after,
            lambda run, query_id: runs[run].ranking(query_id, depth),
            depth,
        )
        diffs.append(MeasureDiff(name, board, tau_of(before, after)))
    return tuple(diffs)


def _same(path: Path, other: Path) -> bool:
    with suppress(OSError):
        return path.samefile(other)
    return False
