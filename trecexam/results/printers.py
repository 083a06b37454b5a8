"""Tables with their notes as people read them: in a terminal, in a notebook, in a paper."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape

from trecexam.results.notes import first_notes
from trecexam.results.terminal import columns, padded, printable, wrapped
from trecexam.results.text import heading_parts, plural, shorten_list
from trecexam.results.view import Column, Rows, View, view

#: Blanks between columns.
_GAP = 2
#: A text column is cut to this share of the width before a column of numbers is left out.
_TEXT = 0.3
#: So many tables are shown in a `repr` and in a notebook, and so many rows (a `repr`: of all).
_TABLES, _ROWS, _HTML_TABLES, _HTML_ROWS = 4, 24, 10, 50
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


def table_lines(
    table: Rows,
    width: int,
    has_all: str,
    *,
    wide: bool = False,
    most: int | None = None,
    heading: Callable[[str], str] = str,
    last: Callable[[str], str] = str,
) -> Iterator[str]:
    """Yield a table's caption, heading and rows, and a line on what is not shown.

    The keys and the first other column are always there; then come those that there is room for.

    Args:
        width: of a line, at least 40.
        has_all: what has all of the table, for the last line.
        wide: nothing is cut or left out, whatever the width.
        most: so many rows are shown.
        heading, last: style a line of the heading, and of the last line.
    """
    shown = view(replace(table, rows=table.rows[:most]), wide=wide)
    fields = shown.columns if wide else _fitting(shown, table.layout.most, width)
    widths = [each.natural for each in fields] if wide else _widths(fields, width)
    heads = [_broken(each.heading, to) for each, to in zip(fields, widths, strict=True)]
    n_heads = max(map(len, heads), default=0)
    cells = []
    for each, to, head in zip(fields, widths, heads, strict=True):
        texts = (*[""] * (n_heads - len(head)), *head, *each.cut_to(to))
        cells.append([padded(text, to, right=each.numeric) for text in texts])
    lines = [(" " * _GAP).join(line).rstrip() for line in zip(*cells, strict=True)]
    yield from [shown.caption] if wide and shown.caption else wrapped(shown.caption, width)
    yield from map(heading, lines[:n_heads])
    yield from lines[n_heads:]
    more = 0 if most is None else len(table.rows) - most
    yield from _more(more, "more row")
    missing = _left_out(shown, fields)
    left_out = [f"left out: {shorten_list(missing, 4, quote='')}"] if missing else []
    is_cut = any(each.widest > to for each, to in zip(fields, widths, strict=True))
    left_out += ["long names are cut"] if is_cut else []
    parts = [*_legend(fields), *left_out, *([has_all] if left_out or more > 0 else [])]
    yield from map(last, wrapped("; ".join(parts), width))


def _fitting(shown: View, most: int | None, width: int) -> list[Column]:
    """Return the columns that there is room for; without what stands behind values where then all fit."""
    meant = list(dict.fromkeys(column.of for column in shown.rest))[:most]
    rest = [column for column in shown.rest if column.of in meant]
    chosen = _with_room(shown.keys, rest, width)
    if len(chosen) < len(rest):
        bare = [replace(column, spread=(), legend="") for column in rest]
        fitting = _with_room(shown.keys, bare, width)
        if not chosen or len(fitting) == len(rest):
            chosen = fitting or bare[:1]
    return [*shown.keys, *chosen]


def _with_room(keys: Sequence[Column], rest: Sequence[Column], width: int) -> list[Column]:
    """Return the columns that there is room for; none where the first has none."""
    text = int(_TEXT * width)
    left = width - sum(column.width(text, 0) + _GAP for column in keys) + _GAP
    chosen: list[Column] = []
    for column in rest:
        needed = _GAP + column.width(text, 0)
        if needed <= left:
            left -= needed
            chosen.append(column)
        elif not chosen:
            break
    return chosen


def _legend(fields: Iterable[Column]) -> list[str]:
    """Return what stands behind values."""
    return list(dict.fromkeys(column.legend for column in fields if column.legend))


def _left_out(shown: View, fields: Sequence[Column]) -> list[str]:
    """Return the headings of columns that are not shown, and what is not shown behind values."""
    chosen = {column.name: column for column in fields}
    unseen = {column.name: column for column in shown.rest if column.name not in chosen}
    missing = [
        each.heading if each.of == each.name else printable(each.name)
        for each in unseen.values()
        if each.of == each.name or each.of not in unseen
    ]
    for each in shown.rest:
        if each.name in chosen and each.spread and not chosen[each.name].spread:
            missing.append("standard errors" if each.legend.startswith("±") else "intervals")
    return list(dict.fromkeys(missing))


def _widths(fields: Sequence[Column], width: int) -> list[int]:
    """Return widths that together fit: first headings are broken, then texts are cut to one width."""
    room = width - _GAP * (len(fields) - 1)
    levels = range(room, -1, -1)
    widths: list[int] = []
    for text, heading in (*((room, level) for level in levels), *((level, 0) for level in levels)):
        widths = [each.width(text, heading) for each in fields]
        if sum(widths) <= room:
            break
    return widths


def _broken(heading: str, width: int) -> list[str]:
    """Return a heading in lines of at most so many columns."""
    lines = [""]
    for part in heading_parts(heading):
        if lines[-1] and columns(lines[-1] + part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return [line.rstrip() for line in lines]


def as_text(tables: Sequence[Rows], notes: Sequence[str] = ()) -> str:
    """Return a `repr`: the first rows of the tables as a terminal shows them, then the notes."""
    width = max(40, shutil.get_terminal_size((100, 24)).columns)
    most = _ROWS // max(1, min(len(tables), _TABLES))
    lines: list[str] = []
    for table in tables[:_TABLES]:
        lines += table_lines(table, width, ".to_pandas() has all", most=most)
    lines += _more(len(tables) - _TABLES, "more table", ": .tables has them")
    for note in first_notes(notes, ".notes"):
        first, *others = wrapped(f"- {note}", width - 2)
        lines += [first, *(f"  {line}" for line in others)]
    return "\n".join(lines)


def as_html(tables: Sequence[Rows], notes: Sequence[str] = ()) -> str:
    """Return what a notebook shows: the tables' first rows, then the notes; everything escaped."""
    more = _more(len(tables) - _HTML_TABLES, "more table", ": .tables has them")
    shown = [*map(_html_table, tables[:_HTML_TABLES]), _html_lines([*more, *first_notes(notes, ".notes")])]
    return "".join(shown)


def _more(count: int, noun: str, where: str = "") -> list[str]:
    return [f"... {plural(count, noun)}{where}"] if count > 0 else []


def _html_table(table: Rows) -> str:
    shown = view(replace(table, rows=table.rows[:_HTML_ROWS]))
    caption = f"<caption>{_html(shown.caption)}</caption>" if shown.caption else ""
    heads = "".join(f"<th>{_html(column.heading)}</th>" for column in shown.columns)
    cells = (
        [f"<td{'' if column.numeric else _LEFT}>{_html(text)}</td>" for text in column.texts]
        for column in shown.columns
    )
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in zip(*cells, strict=True))
    below = _html_lines([*_legend(shown.columns), *_more(len(table.rows) - _HTML_ROWS, "more row")])
    return f"<table>{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{below}"


def _html_lines(lines: Iterable[str]) -> str:
    return "".join(f"<div><small>{_html(line)}</small></div>" for line in lines)


def _html(text: str) -> str:
    return escape(printable(text))


def as_latex(tables: Iterable[Rows], notes: Iterable[str] = ()) -> str:
    """Return a `table` with booktabs for each table; notes are comments."""
    lines = [r"% \usepackage{booktabs}", *(f"% {' '.join(note.split())}" for note in notes)]
    return "\n".join([*lines, *(line for table in tables for line in _latex_lines(view(table)))]) + "\n"


def _latex_lines(shown: View) -> Iterator[str]:
    caption = _latex("; ".join(filter(None, [shown.caption, *_legend(shown.columns)])))
    cells = (
        # A hyphen before a number is a minus.
        [_latex(text).replace("-", "$-$") if column.numeric else _latex(text) for text in column.texts]
        for column in shown.columns
    )
    rows = [[_latex(column.heading) for column in shown.columns], *zip(*cells, strict=True)]
    head, *body = (rf"{' & '.join(row)} \\" for row in rows)
    sides = "".join("r" if column.numeric else "l" for column in shown.columns)
    yield from (r"\begin{table}", r"\centering", *([rf"\caption{{{caption}}}"] if caption else []))
    yield from (rf"\begin{{tabular}}{{{sides}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule")
    yield from (r"\end{tabular}", r"\end{table}")


def _latex(text: str) -> str:
    """Return a text with LaTeX's special characters escaped, and white space made single blanks."""
    return "".join(_SPECIAL.get(char, char) for char in " ".join(text.split()))
