"""Tables with their notes as people read them: in a terminal, in a notebook, in a paper."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape
from typing import NamedTuple

from trecexam.results.notes import first_notes, without_standing
from trecexam.results.terminal import columns, cut_apart, padded, printable, wrapped
from trecexam.results.text import heading_parts, plural, shorten_list
from trecexam.results.view import Column, Rows, view

#: Blanks between columns.
_GAP = 2
#: A text column is cut to this share of the width before a column of numbers is left out.
_TEXT = 0.3
#: Less than this no text is cut to, whatever else has room.
_LEAST = 4
#: Lines of a `repr`.
LINES = 40
#: So many tables are shown in a `repr`, and in a notebook; and so many rows in a notebook.
_TABLES, _HTML_TABLES, _HTML_ROWS = 4, 10, 50
_LEFT = " style='text-align: left'"
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
} | {char: f"\\{char}" for char in "&%$#_{}"}


class Fitted(NamedTuple):
    """A table in lines that keep to a width.

    Attributes:
        tables: of each table the lines of its heading, and those of its rows.
        left_out: columns that had no room.
        cut: whether names were cut.
        legend: what stands behind values.
    """

    tables: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    left_out: tuple[str, ...]
    cut: bool
    legend: tuple[str, ...]


def fitted(table: Rows, width: int | None) -> Fitted:
    """Return a table in lines of at most so many columns.

    The keys and the first other column are always there; then come those that there is room for.

    Args:
        width: at least 40; None to leave nothing out and cut nothing.
    """
    layout, shown = table.layout, view(table, wide=width is None)
    keys, rest = shown.keys, shown.rest
    most = None if width is None else layout.most
    split = layout.split and width is not None
    room = sys.maxsize if width is None else width
    allowed = list(dict.fromkeys(column.of for column in rest))[:most]
    rest = tuple(column for column in rest if column.of in allowed)
    if not split and sum(column.natural + _GAP for column in (*keys, *rest)) > room + _GAP:
        # Rather columns with values than empty ones.
        with_values = tuple(column for column in rest if any(column.texts))
        if with_values:
            keys = (*keys[:1], *(column for column in keys[1:] if any(column.texts)))
            rest = with_values
    tables: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    chosen: list[Column] = []
    was_cut = False
    while rest or not tables:
        added = _with_room(keys, rest, room)
        if not split and len(added) < len(rest):
            plain = list(map(_without_spread, rest))
            bare = _with_room(keys, plain, room) or plain[:1]
            # Rather all columns that are meant than some of them with what stands behind their values.
            if not added or (most is not None and len(bare) == len(rest)):
                added = bare
        added = added or rest[:1]
        widths = _widths([*keys, *added], room)
        was_cut |= any(each.widest > to for each, to in zip((*keys, *added), widths, strict=True))
        tables.append(_lines([*keys, *added], widths, len(table.rows)))
        chosen += added
        rest = tuple(column for column in rest if column.name not in {each.name for each in chosen})
        if not split:
            break
    seen = {column.name for column in (*keys, *chosen)}
    unseen = [column for column in shown.columns if column.name not in seen]
    unseen.sort(key=lambda column: table.header.index(column.name))
    names = {column.name for column in unseen}
    left_out = [each.heading for each in unseen if each.of == each.name or each.of not in names]
    spreads = {column.name for column in chosen if column.spread}
    for column in shown.rest:
        if column.spread and column.name in seen - spreads:
            left_out.append("standard errors" if len(max(column.spread)) == 1 else "intervals")
    legend = (column.legend for column in chosen if column.legend)
    return Fitted(tuple(tables), tuple(dict.fromkeys(left_out)), was_cut, tuple(dict.fromkeys(legend)))


def _without_spread(column: Column) -> Column:
    return replace(column, spread=(), legend="")


def _floor(column: Column, text: int) -> int:
    """Return the least width of a column: numbers are never cut, a heading breaks between its parts."""
    widest = column.widest
    return max(widest if column.numeric else min(widest, text), *map(columns, heading_parts(column.heading)))


def _with_room(keys: Sequence[Column], rest: Sequence[Column], width: int) -> Sequence[Column]:
    """Return the columns that there is room for; their headings leave out what the column before says."""
    text = int(_TEXT * width)
    left = width - sum(_floor(column, text) + _GAP for column in keys) + _GAP
    names, chosen = {column.name for column in rest}, dict[str, Column]()
    for column in rest:
        if column.of != column.name and column.of in chosen:
            column = replace(column, heading=printable(column.name[len(column.of) + 1 :]))
        elif column.of != column.name and column.of in names:
            # What it belongs to had no room.
            continue
        needed = _GAP + _floor(column, text)
        if needed <= left:
            left -= needed
            chosen[column.name] = column
        elif not chosen:
            break
    return list(chosen.values())


def _widths(fields: Sequence[Column], width: int) -> list[int]:
    """Return widths that together fit: headings are broken, and texts are cut to one width."""
    room = width - _GAP * (len(fields) - 1)
    widths = [_floor(each, _LEAST) for each in fields]
    # What is in the rows has room before headings have.
    for goal in ([max(each.widest, to) for each, to in zip(fields, widths, strict=True)],
                 [each.natural for each in fields]):  # fmt: skip
        for level in range(1, max(goal, default=0) + 1):
            wider = [max(to, min(most, level)) for to, most in zip(widths, goal, strict=True)]
            if sum(wider) > room:
                break
            widths = wider
    return widths


def _lines(
    fields: Sequence[Column], widths: Sequence[int], n_rows: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the lines of the heading, and those of the rows."""
    headings = [_broken(each.heading, width) for each, width in zip(fields, widths, strict=True)]
    n_lines = max(map(len, headings), default=0)
    cells = [
        [
            padded(text, width, right=each.numeric)
            for text in (
                *[""] * (n_lines - len(heading)),
                *heading,
                *(each.texts if each.widest <= width else cut_apart(each.texts, width)),
            )
        ]
        for each, width, heading in zip(fields, widths, headings, strict=True)
    ]
    lines = tuple((" " * _GAP).join(line).rstrip() for line in zip(*cells, strict=True))
    return lines[:n_lines], lines[n_lines:]


def _broken(heading: str, width: int) -> list[str]:
    """Return a heading in lines of at most so many columns."""
    lines = [""]
    for part in heading_parts(heading):
        if lines[-1] and columns(lines[-1] + part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return [line.rstrip() for line in lines]


def table_lines(
    table: Rows,
    width: int,
    has_all: str,
    *,
    wide: bool = False,
    most: int | None = None,
    below: Sequence[str] = (),
    heading: Callable[[str], str] = str,
    last: Callable[[str], str] = str,
) -> Iterator[str]:
    """Yield a table's caption, heading and rows, and a line on what is not shown.

    Args:
        has_all: what has all of the table, for the last line.
        wide: nothing is cut or left out.
        most: so many rows are shown.
        below: more for the last line.
        heading, last: style a line of the heading, and of the last line.
    """
    caption = printable(table.caption)
    yield from [caption] if wide and caption else wrapped(caption, width)
    more = 0 if most is None else len(table.rows) - most
    fit = fitted(replace(table, rows=table.rows[:most]), None if wide else width)
    for number, (heads, rows) in enumerate(fit.tables):
        yield from [""] if number else []
        yield from map(heading, heads)
        yield from rows
    yield from [f"... {plural(more, 'more row')}"] if more > 0 else []
    left_out = [f"left out: {shorten_list(fit.left_out, 4, quote='')}"] if fit.left_out else []
    left_out += ["long names are cut"] if fit.cut else []
    parts = [*fit.legend, *below, *left_out, *([has_all] if left_out or more > 0 else [])]
    yield from map(last, wrapped("; ".join(parts), width))


def as_text(tables: Sequence[Rows], notes: Sequence[str] = ()) -> str:
    """Return a `repr`: the first rows of the tables as a terminal shows them, then the notes."""
    width = max(40, shutil.get_terminal_size((100, 24)).columns)
    standing, others = without_standing(notes)
    below = [
        line if n == 0 else f"  {line}"
        for note in (*standing, *first_notes(others, ".notes"))
        for n, line in enumerate(wrapped(f"- {note}", width - 2))
    ]
    most = max(1, (LINES - len(below)) // max(1, min(len(tables), _TABLES)) - 5)
    lines: list[str] = []
    for table in tables[:_TABLES]:
        table = replace(table, layout=replace(table.layout, split=False))
        lines += table_lines(table, width, ".to_pandas() has all", most=most)
    if len(tables) > _TABLES:
        lines.append(f"... {plural(len(tables) - _TABLES, 'more table')}: .tables has them")
    return "\n".join([*lines[: max(1, LINES - len(below))], *below])


def as_html(tables: Sequence[Rows], notes: Sequence[str] = ()) -> str:
    """Return what a notebook shows: the tables' first rows, then the notes; everything escaped."""
    standing, others = without_standing(notes)
    more = len(tables) - _HTML_TABLES
    below = [f"{plural(more, 'more table')}: .tables has them"] if more > 0 else []
    below += [*standing, *first_notes(others, ".notes")]
    return "".join([*map(_html_table, tables[:_HTML_TABLES]), _html_lines(below)])


def _html_table(table: Rows) -> str:
    shown = view(replace(table, rows=table.rows[:_HTML_ROWS]))
    more = len(table.rows) - _HTML_ROWS
    below = [*shown.legend, *([plural(more, "more row")] if more > 0 else [])]
    caption = f"<caption>{_html(shown.caption)}</caption>" if shown.caption else ""
    heads = "".join(f"<th>{_html(column.heading)}</th>" for column in shown.columns)
    cells = (
        [f"<td{'' if column.numeric else _LEFT}>{_html(text)}</td>" for text in column.texts]
        for column in shown.columns
    )
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in zip(*cells, strict=True))
    return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{_html_lines(below)}"


def _html_lines(lines: Iterable[str]) -> str:
    return "".join(f"<div><small>{_html(line)}</small></div>" for line in lines)


def _html(text: str) -> str:
    return escape(printable(text))


def as_latex(tables: Iterable[Rows], notes: Iterable[str] = ()) -> str:
    """Return a `table` with booktabs for each table; notes are comments."""
    lines = [r"% \usepackage{booktabs}", *(f"% {' '.join(note.split())}" for note in notes)]
    return "\n".join([*lines, *map(_latex_table, tables)]) + "\n"


def _latex_table(table: Rows) -> str:
    shown = view(table)
    caption = _latex("; ".join(filter(None, [shown.caption, *shown.legend])))
    cells = (
        # A hyphen before a number is a minus.
        [_latex(text).replace("-", "$-$") if column.numeric else _latex(text) for text in column.texts]
        for column in shown.columns
    )
    rows = [[_latex(column.heading) for column in shown.columns], *zip(*cells, strict=True)]
    head, *body = (rf"{' & '.join(row)} \\" for row in rows)
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            *([rf"\caption{{{caption}}}"] if caption else []),
            rf"\begin{{tabular}}{{{''.join('r' if column.numeric else 'l' for column in shown.columns)}}}",
            *(r"\toprule", head, r"\midrule", *body, r"\bottomrule"),
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _latex(text: str) -> str:
    """Return a text with LaTeX's special characters escaped, and white space made single blanks."""
    return "".join(_SPECIAL.get(char, char) for char in " ".join(text.split()))
