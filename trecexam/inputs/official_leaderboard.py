"""The official leaderboard of a track: a file with the ranks of runs, or with their values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import converters
from converters.leaderboard import read_means
from converters.measure_values import ranks_of

#: What it is called beside official measures; with values, the measure follows it.
LEADERBOARD = "official_leaderboard"
#: What to do where there is none.
HOW_TO_ADD = (
    'put official_leaderboard.json here, {"bm25": 2, "dense": 1} with rank 1 as the best, or '
    "official_leaderboard.txt with lines `run<TAB>rank`"
)


class OfficialLeaderboard(NamedTuple):
    """An official leaderboard.

    Attributes:
        ranks: run -> its rank, 1 is best.
        means: measure -> run -> its mean; empty where the file has ranks alone.
    """

    ranks: Mapping[str, float]
    means: Mapping[str, Mapping[str, float]]

    @property
    def sides(self) -> dict[str, Mapping[str, float]]:
        """`official_leaderboard:MEASURE` -> run -> mean; or `official_leaderboard` -> run -> negated rank."""
        if not self.means:
            return {LEADERBOARD: {run: -rank for run, rank in self.ranks.items()}}
        return {f"{LEADERBOARD}:{measure}": scores for measure, scores in self.means.items()}


def of_leaderboard(name: str) -> bool:
    """Return True for an official measure of the official leaderboard."""
    return name.partition(":")[0] == LEADERBOARD


def read_leaderboard_file(path: Path) -> OfficialLeaderboard:
    """Read an official leaderboard.

    Raises:
        ConversionError: as `converters.leaderboard.read_leaderboard`.
    """
    means = read_means(path)
    entries = ranks_of(next(iter(means.values()))) if means else converters.read(path, "leaderboard")
    return OfficialLeaderboard({entry.run: entry.rank for entry in entries}, means)
