"""A track's leaderboard beside those of other tracks, where several graders look at the same runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trecexam.scores.leaderboard import Leaderboard
from trecexam.scores.rank_correlation.tau import tau_b_columns
from trecexam.scores.ties import TIE_DECIMALS
from trecexam.tables.result import Result
from trecexam.tables.table import Layout, Table
from trecexam.tables.text import plural, shorten_list


@dataclass(frozen=True)
class JoinedLeaderboards(Result):
    """Measures of several tracks by run.

    Attributes:
        board: of the track itself, whose runs are the rows.
        others: a name for each other track -> its leaderboard; its measures are called `NAME:MEASURE`.
        notes: those of all leaderboards, and how far they order the runs alike.
    """

    board: Leaderboard
    others: Mapping[str, Leaderboard]
    notes: tuple[str, ...] = ()

    @property
    def measures(self) -> tuple[str, ...]:
        """The columns of scores, without their standard errors."""
        added = (f"{name}:{each}" for name, board in self.others.items() for each in board.measures)
        return (*self.board.measures, *added)

    def declare(self) -> dict[str, Table]:
        """The leaderboard's table with the others' columns; None where one does not have the run."""
        own = self.board.table
        short = dict(own.layout.short)
        header, rows = own.header, own.rows
        for name, board in self.others.items():
            added = board.table
            short |= {f"{name}:{each}": f"{name}:{known}" for each, known in added.layout.short.items()}
            of_run = {row[0]: row[1:] for row in added.rows}
            nothing = (None,) * (len(added.header) - 1)
            header = (*header, *(f"{name}:{column}" for column in added.header[1:]))
            rows = tuple((*row, *of_run.get(row[0], nothing)) for row in rows)
        layout = Layout(("run",), split=True, ranks=self.board.ranks, short=short)
        return {"leaderboard": Table(header, rows, layout=layout)}

    def json_value(self) -> dict[str, Any]:
        """The leaderboard's JSON; each run has `with`: other track -> scores, null without the run."""
        scores = {
            name: {
                row.run: {
                    measure: {"mean": score.mean, "stderr": score.stderr}
                    for measure, score in zip(other.measures, row.scores, strict=True)
                }
                for row in other.rows
            }
            for name, other in self.others.items()
        }
        own = self.board.json_value()
        runs = [{**row, "with": {k: of.get(row["run"]) for k, of in scores.items()}} for row in own["runs"]]
        return {**own, "notes": list(self.notes), "runs": runs}

    def with_notes(self) -> JoinedLeaderboards:
        """The same with the notes of all, and how far each orders the runs as the first does."""
        others = (f"{name}: {note}" for name, board in self.others.items() for note in board.notes)
        return replace(self, notes=(*self.board.notes, *others, *self._alike()))

    def _alike(self) -> Iterator[str]:
        """How far each other track orders the runs alike (Kendall's tau-b); which runs are in one alone."""
        own = {row.run: row.scores[0].mean for row in self.board.rows}
        for name, board in self.others.items():
            theirs = {row.run: row.scores[0].mean for row in board.rows}
            both = [run for run in own if run in theirs]
            sides = [np.array([[round(means[run], TIE_DECIMALS)] for run in both]) for means in (theirs, own)]
            tau = float(tau_b_columns(*sides)[0]) if both else float("nan")
            value = "not defined" if tau != tau else f"{tau:.2f}"
            yield (
                f"{name}: Kendall's tau of {board.measures[0]} there with {self.board.measures[0]} here is "
                f"{value} over {plural(len(both), 'run')}"
            )
            missing, alone = sorted(own.keys() - theirs.keys()), sorted(theirs.keys() - own.keys())
            parts = [
                f"{words} {shorten_list(runs, 3)}"
                for words, runs in (("has no", missing), ("alone there:", alone))
                if runs
            ]
            if parts:
                yield f"{name}: {'; '.join(parts)}"


def names_of_tracks(folders: tuple[Path, ...]) -> dict[str, Path]:
    """A name for each folder: its last part, or the whole path where that is another one's, too."""
    named: dict[str, Path] = {}
    for folder in folders:
        short = folder.resolve().name
        named[str(folder) if short in named else short] = folder
    return named
