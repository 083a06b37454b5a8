"""What a feature adds to the report's page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from trecexam.tables.excerpt import Excerpt
from trecexam.tables.plots.model import Drawing, Plot


@dataclass(frozen=True)
class Picture:
    """A plot and how it came out."""

    plot: Plot
    drawing: Drawing


@dataclass(frozen=True, eq=False)
class ReportPart:
    """A section of the report's page, or a part of one that another feature begins.

    Attributes:
        section: the section's name on the page; parts of one section stand below each other.
        html: a template with what stands in it. It has the macros of outputs/page/macros.html, and
            `pictures`: those of the feature's plots, by name.
        values: what the template shows, by the names that it has for them.
        title: the section's heading; "" where another part begins it.
        link: what the list of sections calls it; "" for `title`.
        after: the section that it is to stand after; "" for the end of the page.
    """

    section: str
    html: Path
    values: Mapping[str, Any]
    title: str = ""
    link: str = ""
    after: str = ""


class FeatureReport(NamedTuple):
    """What a feature adds to the report of a track: parts of the page, and the plots in them."""

    parts: tuple[ReportPart, ...]
    plots: tuple[Plot, ...] = ()


@dataclass(frozen=True)
class ReportSection:
    """What stands at the head of the page where a grader's items have scores of their own.

    Attributes:
        folder: of out/, where its files are; "" for out/ itself.
        title: of its section.
        lead: what was done, in place of what the page says of test banks.
        after: how the sections that follow are to be read here.
        lines: what one must know of the table.
        pictures: by name.
        links: of other pages, by what they are called.
    """

    folder: str
    title: str
    lead: str
    after: str
    lines: tuple[str, ...]
    table: Excerpt
    pictures: Mapping[str, Picture]
    links: Mapping[str, str] = field(default_factory=dict)


class ExtraFiles(NamedTuple):
    """Files by their names in the folder of such items, and what stands at the head of the page."""

    files: Mapping[str, bytes]
    section: ReportSection | None = None
