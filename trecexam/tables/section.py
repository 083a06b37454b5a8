"""What a feature adds to the report's page: a section is a title, a lead and a `Result`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trecexam.tables.plots.model import Drawing, Plot
from trecexam.tables.result import Result


@dataclass(frozen=True)
class Picture:
    """A plot and how it came out."""

    plot: Plot
    drawing: Drawing


@dataclass(frozen=True, eq=False)
class ReportPart:
    """A section of the report's page, or a part of one that another feature begins.

    The page shows heading and lead, then of the result its notes, its plots, and the tables that people see.

    Attributes:
        section: the section's name on the page; parts of one section are below each other.
        result: what is shown; None for nothing.
        title: the section's heading; "" where another part begins it.
        lead: how it is to be read; what is in backquotes is code.
        why: what there is not, and the reason.
        files: in out/; the first has all rows of the tables.
        rows: of each table, so many are shown.
        folded: each table is behind its caption.
        heading: of this part, below the section's.
        link: what the list of sections calls it; "" for `title`.
        after: the section that it is to stand after; "" for the end of the page.
    """

    section: str
    result: Result | None = None
    title: str = ""
    lead: str = ""
    why: str = ""
    files: tuple[str, ...] = ()
    rows: int = 50
    folded: bool = False
    heading: str = ""
    link: str = ""
    after: str = ""


@dataclass(frozen=True, eq=False)
class ReportHead:
    """What the page begins with where a grader's items have scores of their own.

    Attributes:
        lead: what was done, in place of what the page says of test banks.
        part: the first section.
        after: how the sections below are to be read.
        folder: of out/, where its files are.
    """

    lead: str
    part: ReportPart
    after: str
    folder: str


@dataclass(frozen=True, eq=False)
class ExtraFiles:
    """Files by their names in the folder of such items, and what is at the head of the page."""

    files: Mapping[str, bytes]
    head: ReportHead | None = None
