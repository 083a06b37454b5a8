"""Grades a track's cells repeatedly with its server, and measures the spread of ranks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from trecexam.errors import TrecexamError
from trecexam.extensions.repeated import MOST
from trecexam.extensions.repeated.grader import OneMoreTime, random_grader
from trecexam.extensions.repeated.ranks import RepeatedRanks, repeated_ranks
from trecexam.files.track_lock import TrackLock
from trecexam.graders.base import Estimate, identity_digest
from trecexam.graders.server.grader import ServerGrader
from trecexam.line.evaluation import rubric_values
from trecexam.line.grading import Progress
from trecexam.line.loaded_track import asked_of
from trecexam.line.loader import TrackLoader
from trecexam.line.sheets import CODES, MISSING
from trecexam.tables.result import Result
from trecexam.tables.table import Layout, Table, Value
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trecexam.line.assessment import Assessment
    from trecexam.line.measure_names import MeasureLike

Row = tuple[Value, ...]
_STATUS = {code: status for status, code in CODES.items()}
_of_servers = asked_of(lambda track, *args, **kwargs: isinstance(track.grader, ServerGrader))


@dataclass(frozen=True)
class Repetition(Result):
    """Ranks of mean scores, and cells whose rating differs between repetitions.

    Attributes:
        measure: as ir_measures prints it.
        runs: their names; `ranks` are in that order.
        differing: (query_id, doc_id, item_id, ratings) of each cell whose rating differs; `ratings` has the
            rating of each repetition, or why there is none, separated by blanks.
        samples: how many repetitions are complete and count, of so many `cells` each.
        flips: the chance that two repetitions rate a cell differently, 0..1.
        rejected: why a repetition is incomplete, and does not count.
    """

    measure: str
    runs: tuple[str, ...]
    ranks: RepeatedRanks
    differing: tuple[Row, ...]
    samples: int
    cells: int
    flips: float
    notes: tuple[str, ...]
    rejected: tuple[str, ...] = ()

    def declare(self) -> dict[str, Table]:
        """`runs`, best first; and `differing`, a row per cell."""
        rows: list[Row] = list(zip(self.runs, *(of_runs.tolist() for of_runs in self.ranks), strict=True))
        rows.sort(key=lambda row: (row[2], row[0]))
        header = ("run", self.measure, "rank", "rank.sd", "rank.best", "rank.worst")
        cells = Table(("query_id", "doc_id", "item_id", "ratings"), self.differing)
        return {"runs": Table(header, tuple(rows), layout=Layout(("run",))), "differing": cells}

    @property
    def facts(self) -> dict[str, Any]:
        """Counts of repetitions and cells."""
        counted = {name: getattr(self, name) for name in ("measure", "samples", "cells", "flips")}
        return {**counted, "complete": not self.rejected}


@_of_servers
def repeat(
    loader: TrackLoader,
    samples: int = 5,
    *,
    measure: MeasureLike | None = None,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Repetition:
    """Grades cells with the track's server in `samples` repetitions, like `trecexam repeat`.

    The first repetition is that of `update`. Each further one is stored under its own identity, so no
    answer is requested twice, and `samples` can grow. The budget is the grader's. `out/` stays unchanged.

    Args:
        samples: how many repetitions in all, 2 to 100.
        measure: None for the track's first.
        progress: called after each batch of a repetition.
        stop: asked between batches; True ends it early, and what came is stored.

    Raises:
        GraderError: the grader gives the same answers again.
        LockedError: cells are to be graded, and a daemon is running on this track.
        TrecexamError: the first answers are incomplete, or no further repetition is complete.
        ValueError: the measure cannot be computed, or `samples` is not 2 to 100.
    """
    times = _further_times(loader, samples)
    tracks = [loader.load()]
    rejected: list[str] = []
    for number, time in enumerate(times, 2):
        track, reason = time.load(), ""
        if track.counts.missing and not rejected:
            with TrackLock(loader.folder.lock_path):
                loader.open_to_write()
                track, graded = time.grade(time.load(), progress, stop)
            reason = f"; {graded.why or 'stopped'}"
        if track.counts.missing:
            lost = plural(track.counts.missing, "cell")
            rejected.append(f"repetition {number} is left out: {lost} without an answer{reason}")
        else:
            tracks.append(track)
    if len(tracks) < 2:
        raise TrecexamError(f"nothing to compare: {rejected[0]}", path=loader.folder.root)
    return _repetition(tracks, measure, rejected)


@_of_servers
def estimate_repeat(loader: TrackLoader, samples: int = 5) -> Estimate:
    """Estimates cells, calls, tokens and cost of `repeat`; calls no server.

    Raises:
        TrecexamError, ValueError: as `repeat`.
    """
    times = _further_times(loader, samples)
    stored = {identity_digest(json.loads(identity)) for _, identity in loader.store.graders()}
    begun = [time for time in times if identity_digest(time.grader.identity) in stored]
    new = [time for time in times if time not in begun]
    estimates = [time.estimate(time.load()) for time in (*begun, *new[:1])]
    # Repetitions without an answer take the same.
    return reduce(Estimate.plus, estimates + estimates[-1:] * (len(new) - 1))


def _further_times(loader: TrackLoader, samples: int) -> list[TrackLoader]:
    """The track with the grades of each repetition after the first."""
    if not 2 <= samples <= MOST:
        raise ValueError(f"samples: {samples}; give 2 to {MOST}")
    grader, root = random_grader(loader), loader.folder.root
    missing = loader.load().counts.missing
    if missing:
        lacking = f"{plural(missing, 'cell')} without a first answer"
        raise TrecexamError(f"{lacking}: run `trecexam watch {root} --once`", path=root)
    # All times have one pool.
    loader.shared.several = True
    times = []
    for sample in range(2, samples + 1):
        again = OneMoreTime(grader, sample)
        time = TrackLoader(loader.folder, again, shared=loader.shared, purse=loader.purse)
        time.sharing_budget = lambda: (grader, *loader.sharing_budget())
        times.append(time)
    return times


def _repetition(
    tracks: Sequence[Assessment], measure: MeasureLike | None, rejected: Sequence[str]
) -> Repetition:
    first, n = tracks[0], len(tracks)
    if not first.runs:
        raise TrecexamError(f"no runs yet: drop some into {first.folder.runs}", path=first.folder.root)
    measure_names = [str(first.measures[0] if measure is None else measure)]
    of_times = [rubric_values(track, measure_names) for track in tracks]
    runs, (name,) = of_times[0].runs, of_times[0].measures
    values = np.stack([each.matrix(name).T for each in of_times])
    ranks = repeated_ranks(values * _weights(first, runs, of_times[0].query_ids))
    rows, cells, flips = _differing([track.sheets for track in tracks])
    notes = [
        f"intervals cover the judge's randomness over {n} repetitions on these queries, but neither its "
        f"bias nor the choice of queries",
        f"{len(rows):,} of {plural(cells, 'cell')} have ratings that differ between repetitions (--json "
        f"lists them); two repetitions rate a cell differently with probability {flips:.2%}",
    ]
    if not rows:
        notes.append(
            "all repetitions agree: check that no cache between here and the model returns stored answers"
        )
    all_notes = (*notes, *rejected)
    return Repetition(name, runs, ranks, rows, n, cells, flips, all_notes, tuple(rejected))


def _weights(track: Assessment, runs: Sequence[str], query_ids: Sequence[str]) -> NDArray[np.float64]:
    """The weight of each query in each run's mean, shape (queries, runs), from `average` in [scores]."""
    every = track.config.scores.average == "all"
    counts = np.array([[every or query in track.runs[run] for run in runs] for query in query_ids], float)
    return np.asarray(counts / np.maximum(counts.sum(axis=0), 1))


def _differing(of_times: Sequence[Mapping[str, Any]]) -> tuple[tuple[Row, ...], int, float]:
    """Cells whose rating differs, the number of cells, and the probability that two repetitions differ."""
    rows: list[Row] = []
    cells, different, n = 0, 0, len(of_times)
    for query_id, sheet in of_times[0].items():
        codes = np.stack([sheets[query_id].flat() for sheets in of_times])
        cells += int((codes[0] != MISSING).sum())
        pairs = sum((codes != of_time).sum(axis=0) for of_time in codes)
        different += int(np.sum(pairs))
        cell_indices = np.flatnonzero(pairs)
        for cell_index, row, column in zip(cell_indices, *sheet.at(cell_indices), strict=True):
            ratings = " ".join(_STATUS.get(code, str(code)) for code in codes[:, cell_index].tolist())
            rows.append((query_id, sheet.doc_ids[row], sheet.items[column].item_id, ratings))
    return tuple(rows), cells, different / (n * (n - 1) * max(cells, 1))
