"""`out/history.tsv`: a row for each run that an update moved."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from trecexam.files import atomic
from trecexam.files.kept import read_regular
from trecexam.results.table import Table, to_tsv
from trecexam.results.terminal import printable
from trecexam.scores.leaderboard import Leaderboard

HISTORY = "history.tsv"
COLUMNS = ("time", "run", "measure", "rank.before", "rank.after", "mean.before", "mean.after")
_HEADER = "\t".join(COLUMNS)


class MovedRun(NamedTuple):
    """A run whose rank or mean an update changed.

    Attributes:
        time: UTC, ISO 8601, to the second.
        measure: the measure that ranks the runs.
        rank_before, mean_before: None for a new run, and for all runs after a change of the measure.
        rank_after, mean_after: None for a removed run or a run without a score.
    """

    time: str
    run: str
    measure: str
    rank_before: int | None
    rank_after: int | None
    mean_before: float | None
    mean_after: float | None

    @property
    def summary(self) -> str:
        """The run and its ranks, in a few words."""
        if self.rank_before is None:
            return f"{self.run} new at {self.rank_after}"
        if self.rank_after is None:
            return f"{self.run} gone from {self.rank_before}"
        if self.rank_before != self.rank_after:
            return f"{self.run} {self.rank_before} -> {self.rank_after}"
        return f"{self.run} stays at {self.rank_after} ({self.mean_before:.4f} -> {self.mean_after:.4f})"


def log_moved_runs(path: Path, board: Leaderboard) -> tuple[MovedRun, ...]:
    """Add the runs whose rank or mean differs from their last row to a history, and return them.

    Raises:
        TrecexamError: the history cannot be written.
    """
    text, last = _read(path)
    time = datetime.now(UTC).isoformat(timespec="seconds")
    measure, now = _standings(board)
    moved = []
    # Runs of the board, then removed runs.
    for run in dict.fromkeys((*now, *last)):
        row = last.get(run)
        of = measure if run in now or row is None else row.measure
        before = (row.rank_after, row.mean_after) if row is not None and row.measure == of else (None, None)
        after = now.get(run, (None, None))
        if before != after:
            moved.append(MovedRun(time, run, of, before[0], after[0], before[1], after[1]))
    if moved:
        lines = to_tsv(Table(COLUMNS, tuple(moved))).partition("\n")[2]
        atomic.replace(path, f"{text.rstrip() or _HEADER}\n{lines}".encode(), into_special=False)
    return tuple(moved)


def _standings(board: Leaderboard) -> tuple[str, dict[str, tuple[int, float]]]:
    """Return the measure that ranks the runs, and each run's rank and mean, rounded as in the file."""
    ranked = [(rank, row) for rank, row in zip(board.ranks, board.rows, strict=True) if rank is not None]
    if not ranked or not board.measures:
        return "", {}
    column = next(index for index, score in enumerate(ranked[0][1].scores) if score.exists)
    return board.measures[column], {
        printable(row.run): (rank, round(row.scores[column].mean, 6)) for rank, row in ranked
    }


def _read(path: Path) -> tuple[str, dict[str, MovedRun]]:
    """Return the text of a history and the last row of each run; "" where there is no history."""
    text = ""
    with suppress(OSError, UnicodeDecodeError):
        text = read_regular(path).decode()
    header, *lines = text.split("\n")
    if header != _HEADER:
        return "", {}
    last = {}
    for line in lines:
        # A person's edit may have broken the row.
        with suppress(ValueError):
            time, run, measure, *ranks, mean_before, mean_after = line.split("\t")
            before, after = (int(rank) if rank else None for rank in ranks)
            means = (float(mean) if mean else None for mean in (mean_before, mean_after))
            last[run] = MovedRun(time, run, measure, before, after, *means)
    return text, last
