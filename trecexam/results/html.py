"""HTML: templates of pages and sections, their filters, and output in notebooks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.results.terminal import cut, printable
from trecexam.results.text import first_notes, heading_parts, plural
from trecexam.results.view import View

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup

#: Templates of pages and of their sections.
TEMPLATES = Path(__file__).parent / "page"
#: Styles of the report, the live page and the docs; the live page serves this folder.
LOOK = TEMPLATES / "look"
#: Maximum number of tables in a notebook, and of rows per table.
MOST_TABLES, MOST_ROWS = 10, 50
#: Alignment, since notebooks right-align all cells.
_STYLE = (
    "<style>.trecexam th, .trecexam td {text-align: left} .trecexam .n {text-align: right} "
    ".trecexam .ci {display: block; font-size: smaller}</style>"
)


def as_html(views: Sequence[View], notes: Sequence[str] = (), n_more: int = 0) -> str:
    """Return HTML for a notebook: the first notes, then tables, and the number of further tables."""
    more = f"... {plural(n_more, 'more table')}: .tables has them" if n_more else ""
    lines = first_notes(notes, ".notes")
    section = macros()["section"](notes=lines, tables=views, below=more)
    return f'{_STYLE}<div class="trecexam">{section}</div>'


def style() -> str:
    """Return the style sheet of a single-file page."""
    look = (LOOK / "look.css").read_text(encoding="utf-8")
    return look + (TEMPLATES / "report.css").read_text(encoding="utf-8")


def safe(content: str) -> Markup:
    """Mark our own HTML, in which all values are escaped."""
    from markupsafe import Markup

    return Markup(content)


def _talk_line(line: str, width: int) -> Markup:
    """Return a note, shortened, with text in backquotes as code."""
    from markupsafe import escape

    return safe(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(cut(line, width)))))


@cache
def macros() -> Mapping[str, Callable[..., Markup]]:
    """Return the macros of macros.html by name."""
    return vars(template("macros.html").module)


@cache
def template(name: str) -> jinja2.Template:
    """Return a template of `TEMPLATES`."""
    return environment(TEMPLATES).get_template(name)


def environment(*folders: Path) -> jinja2.Environment:
    """Return an environment with the filters of macros.html, which escapes all values.

    Args:
        folders: searched for templates in this order.
    """
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(cut=cut, printable=printable, heading_parts=heading_parts, talk=_talk_line)
    # Our own SVG; matplotlib escaped all names in it.
    made.filters["svg"] = lambda content: safe(content.decode())
    return made
