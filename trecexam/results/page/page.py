"""A page of results: sections that features add, and all of them as HTML with the plots' SVG inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from trecexam.results.html import macros, safe, style, template
from trecexam.results.notes import ranked
from trecexam.results.plots.canvas import FOLDER, draw, plot_files
from trecexam.results.result import Result

if TYPE_CHECKING:
    from markupsafe import Markup


class Section(NamedTuple):
    """A section of a page as HTML; `link` is its name in a list of sections."""

    name: str
    title: str
    link: str
    content: Markup


class Page:
    """A page that features add sections to: `sections` in their order, and `files` of plots by their names.

    Args:
        lead: what was done, for the head of the page.
        link: gives the address, on the page, of a file or folder of out/; None for plots without files.
        pdf: plots have PDF files, too.
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
        """Add a section, or a part at the end of a section that is there.

        A part has its heading and lead, then of the result the notes, the plots, and the tables that people
        see. In `lead`, `why` and `below`, text in backquotes is set as code.

        Args:
            title: of the section; a section that is there keeps its own.
            why: what there is not, and the reason.
            below: small print at the end of the part.
            files: in out/; the first has all rows of the tables.
            rows: shown of each table.
            folded: fold each table behind its caption.
            link: the section's name in the list of sections; "" for the title.
            after: the section that a new one stands after; "" for the start of the page, None for the end.
        """
        plots = () if result is None else result.plots
        drawings = [draw(plot, pdf=self._pdf) for plot in plots]
        for plot, drawing in zip(plots, drawings, strict=True) if self._with_files else ():
            self.files.update(plot_files(plot, drawing))
        tables = () if result is None else result._for_people()
        content = macros()["section"](
            title=title,
            lead=lead,
            heading=heading,
            why=why,
            below=below,
            files=files,
            folded=folded,
            notes=() if result is None else ranked(result.notes),
            tables=[table.view(rows, page=True) for table in tables],
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
            title: a setting, so that a copy of the track's folder has the same bytes.
            numbers: what is counted, and how many there are, for the head of the page.
            cautions: what a reader must know before all else.
            provenance: what the numbers come from, by the names that its template has; None for no section.
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
        # What slipped through as half a character is written as its escape.
        return text.encode("utf-8", "backslashreplace")
