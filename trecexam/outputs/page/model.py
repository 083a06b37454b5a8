"""What the report says, before it is a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trecexam.tables.excerpt import Excerpt
from trecexam.tables.section import Picture, ReportSection

if TYPE_CHECKING:
    from trecexam.features.agreement.arithmetic import Crosstab
    from trecexam.scores.leaderboard import Leaderboard


@dataclass(frozen=True)
class Listed:
    """Items of the bank of which the same is to be said.

    Attributes:
        title: what.
        note: what it means.
        items: the first of them.
    """

    title: str
    note: str
    items: Excerpt


@dataclass(frozen=True)
class Provenance:
    """What the numbers come from.

    Attributes:
        facts: (what, value) in the order of the page.
        grader, settings: as indented JSON.
        inputs: file and sha256 of every input.
        versions: package and version.
    """

    facts: tuple[tuple[str, str], ...]
    grader: str
    settings: str
    inputs: Excerpt
    versions: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Report:
    """Everything that the page shows. Where a part has nothing to show, its `why` says so in a line.

    Attributes:
        title: at the head of the page. The folder's name would make other bytes of the same inputs.
        numbers: (count, of what) for the head of the page.
        cautions: what a reader must know before all else: cells without a grade, a grading that goes on.
        board: None where there are no runs.
        pictures: those of the plots that apply, by name.
        why: by section: why it is empty.
        correlation: rubric by official measures.
        remarks: lines on what was compared with the official side.
        crosstabs: label by judgment, graded and binary.
        agreed: lines on the agreement.
        items: lists of items to look at.
        holes: by run; `hole_lines` say it of the whole pool.
        human: people's ratings, and what became of them.
        beside: None where the grader's items have no scores of their own.
    """

    title: str
    numbers: tuple[tuple[str, str], ...]
    cautions: tuple[str, ...]
    board: Leaderboard | None
    pictures: Mapping[str, Picture]
    why: Mapping[str, str]
    correlation: Excerpt | None
    remarks: tuple[str, ...]
    crosstabs: tuple[Crosstab, ...]
    agreed: tuple[str, ...]
    items: tuple[Listed, ...]
    holes: Excerpt | None
    hole_lines: tuple[str, ...]
    rejected: Excerpt
    human: Excerpt | None
    provenance: Provenance
    beside: ReportSection | None = None
