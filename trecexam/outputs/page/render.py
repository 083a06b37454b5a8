"""The report as HTML: one template, one style sheet, and the plots' SVG inside."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trecexam.outputs.page.model import PagePart, Report
from trecexam.tables.terminal import cut, printable
from trecexam.tables.text import heading_parts

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup

HERE = Path(__file__).parent
#: What the live page and the docs have, too; its own folder, which the live page serves.
LOOK = HERE / "look"


class Section(NamedTuple):
    """A section of the page, as HTML; `link` is what a list of sections calls it."""

    name: str
    title: str
    link: str
    content: Markup


def render(report: Report) -> bytes:
    """The page."""
    sections = list(rendered(report.parts))
    if report.provenance:
        provenance = _template(HERE / "provenance.html").render(report.provenance, table=_macros()["table"])
        sections.append(Section("provenance", "Provenance", "Provenance", _safe(provenance)))
    text = _template(HERE / "report.html").render(report=report, sections=sections, style=style())
    # What slipped through as half a character is written as its escape.
    return text.encode("utf-8", "backslashreplace")


def style() -> str:
    """The style sheet of a page that is one file."""
    return "".join(path.read_text(encoding="utf-8") for path in (LOOK / "look.css", HERE / "report.css"))


def rendered(page_parts: Iterable[PagePart]) -> Iterator[Section]:
    """The sections that these parts make."""
    sections: dict[str, list[PagePart]] = {}
    for part in page_parts:
        sections.setdefault(part.part.section, []).append(part)
    show = _macros()["section"]
    for name in _in_order(sections):
        first = sections[name][0].part
        content = "".join(str(show(part)) for part in sections[name])
        yield Section(name, first.title, first.link or first.title, _safe(content))


def _safe(content: str) -> Markup:
    """Of our own templates, in which jinja2 escaped all values."""
    from markupsafe import Markup

    return Markup(content)


def _in_order(sections: Mapping[str, Sequence[PagePart]]) -> list[str]:
    """As they come, but for those that are to stand after another one."""
    order = [name for name, parts in sections.items() if parts[0].part.after not in sections]
    for name, parts in sections.items():
        if name not in order:
            after = parts[0].part.after
            order.insert(order.index(after) + 1 if after in order else len(order), name)
    return order


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= filters()
    return environment


def filters() -> dict[str, Callable[..., Any]]:
    """Those that macros.html needs, by name."""
    from markupsafe import Markup

    # The SVG is our own, in which matplotlib escaped all names.
    svg = lambda content: Markup(content.decode())  # noqa: E731
    return {
        "cut": cut,
        "printable": printable,
        "heading_parts": heading_parts,
        "svg": svg,
        "talk": _talk_line,
    }


@cache
def _macros() -> Mapping[str, Callable[..., Markup]]:
    return vars(_template(HERE / "macros.html").module)


@cache
def _template(path: Path) -> jinja2.Template:
    return _environment().from_string(path.read_text(encoding="utf-8"))


def _talk_line(line: str, width: int) -> Markup:
    """A line of talk, cut; what is in backquotes in it is set as code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(cut(line, width)))))
