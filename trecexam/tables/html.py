"""Tables as a notebook shows them: short, and with everything escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from trecexam.tables.terminal import printable
from trecexam.tables.text import plural

#: Rows, and notes, that are shown.
_ROWS, _NOTES = 50, 5


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """The first rows as an HTML table, with notes below it, a line each. Numbers stand right, texts left.

    Args:
        notes: of more than five, the first, and how many more there are.
    """
    shown = rows[:_ROWS]
    left = [not all(cell[:1] in "-0123456789" for cell in column) for column in zip(*shown, strict=True)]
    lines = [*notes[:_NOTES]]
    lines += [plural(len(notes) - _NOTES, "more note")] if len(notes) > _NOTES else []
    lines += [plural(len(rows) - _ROWS, "more row")] if len(rows) > _ROWS else []
    below = "".join(f"<div><small>{_safe(line)}</small></div>" for line in lines)
    body = "".join(_row(row, left) for row in shown)
    heads = "".join(f"<th>{_safe(name)}</th>" for name in header)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{below}"


def _row(cells: Iterable[str], left: Sequence[bool]) -> str:
    style = {True: " style='text-align: left'", False: ""}
    shown = (f"<td{style[at]}>{_safe(cell)}</td>" for cell, at in zip(cells, left, strict=True))
    return f"<tr>{''.join(shown)}</tr>"


def _safe(text: str) -> str:
    return escape(printable(text))
