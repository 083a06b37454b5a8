"""A page of results: sections that features add, and all of them as HTML with the plots' SVG inside."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from trecexam.results.notes import ranked
from trecexam.results.plots.canvas import FOLDER, draw, plot_files
from trecexam.results.result import Result
from trecexam.results.terminal import cut, printable
from trecexam.results.text import heading_parts
from trecexam.results.view import excerpt

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup

HERE = Path(__file__).parent
#: Styles of the report, the live page and the docs, in a folder of their own, which the live page serves.
LOOK = HERE / "look"


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
        content = _macros()["section"](
            title=title,
            lead=lead,
            heading=heading,
            why=why,
            below=below,
            files=files,
            folded=folded,
            notes=() if result is None else ranked(result.notes),
            tables=[excerpt(table, rows, next(iter(files), "")) for table in tables],
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
            html = _template(HERE / "provenance.html").render(provenance, table=_macros()["table"])
            sections = [*sections, Section("provenance", "Provenance", "Provenance", _safe(html))]
        text = _template(HERE / "report.html").render(
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


def style() -> str:
    """Return the style sheet of a page that is one file."""
    return "".join(path.read_text(encoding="utf-8") for path in (LOOK / "look.css", HERE / "report.css"))


def filters() -> dict[str, Callable[..., Any]]:
    """Return the filters that macros.html needs, by name."""
    return {
        "cut": cut,
        "printable": printable,
        "heading_parts": heading_parts,
        # The SVG is our own, in which matplotlib escaped all names.
        "svg": lambda content: _safe(content.decode()),
        "talk": _talk_line,
    }


def _safe(content: str) -> Markup:
    """Mark our own HTML, in which all values are escaped."""
    from markupsafe import Markup

    return Markup(content)


def _talk_line(line: str, width: int) -> Markup:
    """Return a line of talk, cut; what is in backquotes in it is set as code."""
    from markupsafe import escape

    return _safe(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(cut(line, width)))))


@cache
def _macros() -> Mapping[str, Callable[..., Markup]]:
    return vars(_template(HERE / "macros.html").module)


@cache
def _template(path: Path) -> jinja2.Template:
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= filters()
    return environment.from_string(path.read_text(encoding="utf-8"))
