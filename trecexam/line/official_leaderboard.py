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
    """What an official leaderboard says.

    Attributes:
        ranks: run -> its rank, 1 is best.
        means: measure -> run -> its mean; empty where the file has ranks alone.
    """

    ranks: Mapping[str, float]
    means: Mapping[str, Mapping[str, float]]

    @property
    def sides(self) -> dict[str, Mapping[str, float]]:
        """What runs are ordered by, as `official_leaderboard:MEASURE`, or `official_leaderboard` of ranks
        alone, which are negated -> run -> a score, higher is better.
        """
        if not self.means:
            return {LEADERBOARD: {run: -rank for run, rank in self.ranks.items()}}
        return {f"{LEADERBOARD}:{measure}": scores for measure, scores in self.means.items()}


def of_leaderboard(name: str) -> bool:
    """Whether an official measure is one of the official leaderboard."""
    return name.partition(":")[0] == LEADERBOARD


def read_leaderboard_file(path: Path) -> OfficialLeaderboard:
    """An official leaderboard.

    Raises:
        ConversionError: as `converters.leaderboard.read_leaderboard`.
    """
    means = read_means(path)
    entries = ranks_of(next(iter(means.values()))) if means else converters.read(path, "leaderboard")
    return OfficialLeaderboard({entry.run: entry.rank for entry in entries}, means)
