"""What an update found, for the outputs and for the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trecexam.tables.table import Table

if TYPE_CHECKING:
    from trecexam.features.agreement.agreement import Agreements
    from trecexam.features.correlation.comparison import LeaderboardComparison, Outliers
    from trecexam.features.holes.holes import HolesReport
    from trecexam.line.sheets import Counts
    from trecexam.scores.leaderboard import Leaderboard
    from trecexam.tables.section import ReportSection


@dataclass(frozen=True, eq=False)
class Findings:
    """What an update computed for the other outputs; None where it does not apply.

    Attributes:
        human: out/human.tsv.
        versions: package -> version.
        beside: what the grader's items have of scores of their own.
    """

    board: Leaderboard
    compared: LeaderboardComparison | None
    outliers: Outliers | None
    agreed: Agreements | None
    holes: HolesReport
    human: Table | None
    rejected: Table
    counts: Counts
    complete: bool
    versions: Mapping[str, str | None] = field(default_factory=dict)
    beside: ReportSection | None = None
