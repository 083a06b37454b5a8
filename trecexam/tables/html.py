"""Tables as a notebook shows them: short, and with everything escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from trecexam.tables.terminal import printable
from trecexam.tables.text import plural

#: Rows that are shown.
_ROWS = 50


def html_table(
    header: Sequence[str],
    numeric: Sequence[bool],
    rows: Sequence[Sequence[str]],
    caption: str = "",
    legend: Sequence[str] = (),
) -> str:
    """The first rows as an HTML table, with the legend below it. Numbers stand right, texts left."""
    first_rows = rows[:_ROWS]
    below = [*legend]
    below += [plural(len(rows) - _ROWS, "more row")] if len(rows) > _ROWS else []
    head = f"<caption>{_safe(caption)}</caption>" if caption else ""
    heads = "".join(f"<th>{_safe(name)}</th>" for name in header)
    body = "".join(_row(row, numeric) for row in first_rows)
    return f"<table>{head}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{html_notes(below)}"


def html_notes(lines: Iterable[str]) -> str:
    """The lines in small letters, one below the other."""
    return "".join(f"<div><small>{_safe(line)}</small></div>" for line in lines)


def _row(cells: Iterable[str], numeric: Sequence[bool]) -> str:
    style = {False: " style='text-align: left'", True: ""}
    html_cells = (f"<td{style[at]}>{_safe(cell)}</td>" for cell, at in zip(cells, numeric, strict=True))
    return f"<tr>{''.join(html_cells)}</tr>"


def _safe(text: str) -> str:
    return escape(printable(text))
