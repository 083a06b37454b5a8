"""The inputs of a track as they were read."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from converters.records import Qrel, judgment
from converters.run import Run
from trecexam.bank import Bank
from trecexam.files.stamps import Rejected
from trecexam.inputs.dropped_runs import TakenRuns
from trecexam.inputs.kind import Asked
from trecexam.inputs.official_leaderboard import OfficialLeaderboard


@dataclass(frozen=True, eq=False)
class TrackInputs:
    """All inputs of a track at one moment, but texts of passages and people's ratings.

    Graders with the same needs share one.

    Attributes:
        dropped: runs and whole answers that are graded and ranked.
        left_out_runs: the number of runs that the settings `unit` and `runs` leave out.
        bank_files: files of the bank.
        query_texts: query_id -> text, as far as it is known.
        own_queries: queries of the track's file or dataset, as far as it can be read.
        official: official judgments, None where there are none.
        official_leaderboard: None where there is none.
        asked: the items to grade.
        rejected: inputs that were rejected, sorted.
        pools: pools that were made of these inputs.
    """

    dropped: TakenRuns
    left_out_runs: int
    bank_files: tuple[Path, ...]
    query_texts: Mapping[str, str]
    own_queries: frozenset[str]
    official: tuple[Qrel, ...] | None
    official_leaderboard: OfficialLeaderboard | None
    asked: Asked
    rejected: tuple[Rejected, ...]
    pools: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def runs(self) -> Mapping[str, Run]:
        """Runs by display name, sorted by name."""
        return self.dropped.runs

    @property
    def bank(self) -> Bank:
        """The items to grade."""
        return self.asked.bank

    @property
    def official_ranks(self) -> Mapping[str, float] | None:
        """run -> its official rank, 1 is best; None without an official leaderboard."""
        return None if self.official_leaderboard is None else self.official_leaderboard.ranks

    @cached_property
    def judged_queries(self) -> frozenset[str]:
        """Queries with official judgments."""
        return frozenset(row.query_id for row in self.official or () if judgment(row.relevance) is not None)
