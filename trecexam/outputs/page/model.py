"""What the report says, before it is a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from trecexam.tables.excerpt import Excerpt, excerpt
from trecexam.tables.notes import ranked
from trecexam.tables.plots.style import WIDTH
from trecexam.tables.section import Picture, ReportHead, ReportPart


@dataclass(frozen=True, eq=False)
class PagePart:
    """A part of a section as the page shows it.

    Attributes:
        pictures: of its result's plots.
        plots: the folder of out/ that their files are in; "" where they have none.
        link: gives the address of a file or folder of out/, on the page.
    """

    part: ReportPart
    pictures: Sequence[Picture] = ()
    plots: str = "plots"
    link: Callable[[str], str] = str

    @property
    def notes(self) -> tuple[str, ...]:
        """The result's notes by their ranks."""
        return () if self.part.result is None else tuple(ranked(self.part.result.notes))

    @cached_property
    def tables(self) -> tuple[Excerpt, ...]:
        """The tables that people see."""
        result, (file, *_) = self.part.result, (*self.part.files, "")
        tables = () if result is None else result._for_people()
        return tuple(excerpt(table, self.part.rows, file) for table in tables)

    @property
    def shape(self) -> str:
        """How a plot without a neighbour is set: `wide`, or `tall` beside its caption."""
        size = self.pictures[0].plot.size
        return "wide" if size.width > WIDTH else "tall" if size.rows else ""


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that the page shows.

    Attributes:
        title: at the head of the page. A setting, so that a copy of the folder has the same bytes.
        lead: what was done, in a sentence or two.
        numbers: (count, of what) for the head of the page.
        cautions: what a reader must know before all else: cells without a grade, a grading that continues.
        parts: of all sections, the first of each in the order of the page.
        provenance: what the numbers come from, by the names that its template has for them; empty where the
            pages of the graders say it.
        head: None where the grader's items have no scores of their own.
        pages: the report's other pages, name -> address.
    """

    title: str
    lead: str
    numbers: tuple[tuple[str, str], ...]
    cautions: tuple[str, ...]
    parts: Sequence[PagePart]
    provenance: Mapping[str, Any]
    head: ReportHead | None = None
    pages: Mapping[str, str] = field(default_factory=dict)
