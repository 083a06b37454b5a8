"""A track's leaderboard beside those of other tracks, where several graders look at the same runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trecexam.features.leaderboard.tables import leaderboard_table
from trecexam.scores.leaderboard import Leaderboard
from trecexam.scores.rank_correlation.tau import tau_b_columns
from trecexam.scores.ties import TIE_DECIMALS
from trecexam.tables.table import Table
from trecexam.tables.text import plural, shorten_list


@dataclass(frozen=True)
class JoinedLeaderboards:
    """Measures of several tracks by run.

    Attributes:
        board: of the track itself, whose runs are the rows.
        others: a name for each other track -> its leaderboard; its measures are called `NAME:MEASURE`.
    """

    board: Leaderboard
    others: Mapping[str, Leaderboard]

    @property
    def measures(self) -> tuple[str, ...]:
        """The columns of scores, without their standard errors."""
        added = (f"{name}:{each}" for name, board in self.others.items() for each in board.measures)
        return (*self.board.measures, *added)

    def table(self) -> Table:
        """The leaderboard's table with the others' columns; None where one does not have the run."""
        own = leaderboard_table(self.board)
        header, rows = own.header, own.rows
        for name, board in self.others.items():
            added = leaderboard_table(board)
            of_run = {row[0]: row[1:] for row in added.rows}
            nothing = (None,) * (len(added.header) - 1)
            header = (*header, *(f"{name}:{column}" for column in added.header[1:]))
            rows = tuple((*row, *of_run.get(row[0], nothing)) for row in rows)
        return Table(header, rows)

    def as_json(self, board: dict[str, Any]) -> dict[str, Any]:
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
        runs = [{**row, "with": {k: of.get(row["run"]) for k, of in scores.items()}} for row in board["runs"]]
        return {**board, "runs": runs}

    def lines(self) -> Iterator[str]:
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
