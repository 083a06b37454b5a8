"""What a track folder holds, as it was read."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from converters.records import HumanRating, Qrel, judgment
from trecexam.bank import Bank
from trecexam.files.stamps import Rejected
from trecexam.line.dropped_runs import TakenRuns
from trecexam.line.kind import Asked
from trecexam.line.official_leaderboard import OfficialLeaderboard


@dataclass(frozen=True, eq=False)
class TrackInputs(TakenRuns):
    """All inputs of a track at one moment, but the passages' texts.

    Attributes:
        bank_files: of the bank.
        official: the official judgments, None where there are none.
        official_leaderboard: None where there is none.
        own_queries: those that the track's file or dataset names, as far as it can be read.
        rejected: what was rejected.
        pools: those that were made of these inputs; the same in all that differ in people's lines alone.
        asked: the items to grade: the bank, and the texts.
        human: the lines of overrides.tsv and their numbers; whether they count is not decided here.
        judged: those of judgments.tsv, where there may be a scale for them.
    """

    bank_files: tuple[Path, ...]
    query_texts: Mapping[str, str]
    official: tuple[Qrel, ...] | None
    official_leaderboard: OfficialLeaderboard | None
    own_queries: frozenset[str]
    rejected: tuple[Rejected, ...]
    pools: dict[Hashable, Any]
    asked: Asked
    human: tuple[tuple[int, HumanRating], ...]
    judged: tuple[tuple[int, HumanRating], ...]

    @property
    def bank(self) -> Bank:
        """The items to grade."""
        return self.asked.bank

    @property
    def official_ranks(self) -> Mapping[str, float] | None:
        """run -> its official rank, 1 is best; None where there are none."""
        return None if self.official_leaderboard is None else self.official_leaderboard.ranks

    def of_runs(self, which: Literal["all", "responses", "ranked"]) -> TrackInputs:
        """The same with generated responses alone, or with ranked runs alone."""
        if which == "all":
            return self
        names = [name for name in self.runs if (name in self.generated) == (which == "responses")]
        return replace(
            self,
            runs={name: self.runs[name] for name in names},
            run_files={name: self.run_files[name] for name in names},
            run_contents={name: self.run_contents[name] for name in names},
        )

    @cached_property
    def judged_queries(self) -> frozenset[str]:
        """Those with official judgments."""
        return frozenset(row.query_id for row in self.official or () if judgment(row.relevance) is not None)
