"""What a feature adds to the report's page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from trecexam.tables.excerpt import Excerpt
from trecexam.tables.plots.model import Drawing, Plot


@dataclass(frozen=True)
class Picture:
    """A plot and how it came out."""

    plot: Plot
    drawing: Drawing


@dataclass(frozen=True)
class ReportSection:
    """What stands at the head of the page where a grader's items have scores of their own.

    Attributes:
        folder: of out/, where its files are.
        title: of its section.
        lead: what was done, in place of what the page says of test banks.
        after: how the sections that follow are to be read here.
        lines: what one must know of the table.
        pictures: by name.
    """

    folder: str
    title: str
    lead: str
    after: str
    lines: tuple[str, ...]
    table: Excerpt
    pictures: Mapping[str, Picture]


class ExtraFiles(NamedTuple):
    """What a maker gives: files by their names in its folder, and its part of the report's page."""

    files: Mapping[str, bytes]
    section: ReportSection | None = None
