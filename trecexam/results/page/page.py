"""A page of results: sections that features add, as one HTML text with inline SVG plots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from trecexam.results.html import macros, safe, style, template
from trecexam.results.plots.canvas import FOLDER, draw, plot_files
from trecexam.results.result import Result, Tables
from trecexam.results.text import rank_of

if TYPE_CHECKING:
    from markupsafe import Markup


class Section(NamedTuple):
    """A section of a page as HTML; `link` is its name in a list of sections."""

    name: str
    title: str
    link: str
    content: Markup


class Page:
    """A page that features add sections to: `sections` in order, and plot `files` by name.

    Args:
        lead: a summary for the head of the page.
        link: returns the address of a file or folder of out/ on the page; None for plots without files.
        pdf: write plots as PDF files, too.
    """

    def __init__(
        self, lead: str = "", link: Callable[[str], str] | None = None, *, pdf: bool = False
    ) -> None:
        self.lead = lead
        self.sections: list[Section] = []
        self.files: dict[str, bytes] = {}
        self._link, self._with_files, self._pdf = link or str, link is not None, pdf

    def add(
        self,
        name: str,
        result: Result | None = None,
        *,
        title: str = "",
        lead: str = "",
        heading: str = "",
        why: str = "",
        below: str = "",
        files: Sequence[str] = (),
        rows: int = 50,
        folded: bool = False,
        link: str = "",
        after: str | None = None,
    ) -> None:
        """Add a section, or a part at the end of an existing section.

        A part has a heading and a lead, then the result's notes, plots and displayed tables. In `lead`, `why`
        and `below`, text in backquotes is set as code.

        Args:
            title: title of a new section; an existing section keeps its title.
            why: what is missing, with the reason.
            below: small print at the end of the part.
            files: related files in out/; the first has all rows of the tables.
            rows: maximum rows per table.
            folded: fold each table behind its caption.
            link: the section's name in the list of sections; "" for the title.
            after: the section before a new section; "" for the start of the page, None for the end.
        """
        result = Tables({}) if result is None else result
        plots, drawings = result.plots, [draw(plot, pdf=self._pdf) for plot in result.plots]
        for plot, drawing in zip(plots, drawings, strict=True) if self._with_files else ():
            self.files.update(plot_files(plot, drawing))
        content = macros()["section"](
            title=title,
            lead=lead,
            heading=heading,
            why=why,
            below=below,
            files=files,
            folded=folded,
            notes=sorted(result.notes, key=rank_of),
            tables=[table.view(rows, page=True) for table in result._for_people()],
            pictures=[*zip(plots, drawings, strict=True)],
            plots=self._link(FOLDER) if self._with_files else "",
            link=self._link,
        )
        names = [section.name for section in self.sections]
        if name in names:
            at = names.index(name)
            self.sections[at] = self.sections[at]._replace(content=self.sections[at].content + content)
        else:
            at = 0 if after == "" else names.index(after) + 1 if after in names else len(names)
            self.sections.insert(at, Section(name, title, link or title, content))

    def to_html(
        self,
        title: str,
        numbers: Mapping[str, int],
        cautions: Sequence[str],
        provenance: Mapping[str, Any] | None = None,
        pages: Mapping[str, str] = MappingProxyType({}),
    ) -> bytes:
        """Return the page as one file.

        Args:
            title: from the settings, so that a copy of the track's folder gives the same bytes.
            numbers: noun -> count, for the head of the page.
            cautions: the most important warnings.
            provenance: sources of the numbers, by name in the template; None for no section.
            pages: the track's other reports: name -> address.
        """
        sections = self.sections
        if provenance is not None:
            html = template("provenance.html").render(provenance, table=macros()["table"])
            sections = [*sections, Section("provenance", "Provenance", "Provenance", safe(html))]
        text = template("report.html").render(
            title=title,
            lead=self.lead,
            numbers=numbers,
            cautions=cautions,
            sections=sections,
            pages=pages,
            style=style(),
        )
        # Lone surrogates are written as escapes.
        return text.encode("utf-8", "backslashreplace")
