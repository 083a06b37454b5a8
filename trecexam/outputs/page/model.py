"""What the report says, before it is a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trecexam.tables.section import Picture, ReportPart, ReportSection


class PagePart(NamedTuple):
    """A part of a section, and the pictures that it may show, by name."""

    part: ReportPart
    pictures: Mapping[str, Picture]


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that the page shows.

    Attributes:
        title: at the head of the page. The folder's name would make other bytes of the same inputs.
        numbers: (count, of what) for the head of the page.
        cautions: what a reader must know before all else: cells without a grade, a grading that goes on.
        parts: of all sections, the first of each in the order of the page.
        own_scores: None where the grader's items have no scores of their own.
    """

    title: str
    numbers: tuple[tuple[str, str], ...]
    cautions: tuple[str, ...]
    parts: Sequence[PagePart]
    own_scores: ReportSection | None = None
