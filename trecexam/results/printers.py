"""Tables with their notes as text for a terminal and as LaTeX for a paper."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, repeat

from trecexam.results.notes import first_notes
from trecexam.results.terminal import columns, cut_apart, padded, printable, wrapped
from trecexam.results.text import heading_parts, plural, shorten_list
from trecexam.results.view import Column, View

#: Blanks between columns.
_GAP = 2
#: Share of the width to which a text column is cut before a number column is left out.
_TEXT = 0.3
#: Maximum number of tables in a `repr`, and of rows in total.
MOST_TABLES, MOST_ROWS = 4, 24
#: Placeholder for a missing number.
NO_VALUE = "–"  # noqa: RUF001
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
    view: View,
    width: int,
    has_all: str,
    *,
    heading: Callable[[str], str] = str,
    last: Callable[[str], str] = str,
) -> Iterator[str]:
    """Yield a table's caption, heading and rows, and a line on hidden columns and rows.

    The keys and the first other column always appear; further columns follow while they fit.

    Args:
        width: width of a line, at least 40.
        has_all: the option or method that gives the whole table, for the last line.
        heading, last: functions that style a heading line and the last line.
    """
    fields = _fitting(view, width)
    widths = _widths(fields, width)
    heads = [_broken(each.heading, to) for each, to in zip(fields, widths, strict=True)]
    n_heads = max(map(len, heads), default=0)
    cells = []
    for each, to, head in zip(fields, widths, heads, strict=True):
        texts = each.texts if each.widest <= to else cut_apart(each.texts, to)
        texts = (*[""] * (n_heads - len(head)), *head, *texts)
        cells.append([padded(text, to, right=each.kind == "n") for text in texts])
    lines = [(" " * _GAP).join(line).rstrip() for line in zip(*cells, strict=True)]
    yield from wrapped(view.caption, width)
    yield from map(heading, lines[:n_heads])
    yield from lines[n_heads:]
    more = view.total - view.n_rows
    yield from [f"... {plural(more, 'more row')}"] if more else []
    missing = _left_out(view, fields)
    left_out = [f"left out: {shorten_list(missing, 4, quote='')}"] if missing else []
    is_cut = any(each.widest > to for each, to in zip(fields, widths, strict=True))
    left_out += ["long names are cut"] if is_cut else []
    legend = view._replace(keys=(), rest=tuple(fields)).legend
    parts = [*legend, *left_out, *([has_all] if left_out or more else [])]
    yield from map(last, wrapped("; ".join(parts), width))


def _fitting(view: View, width: int) -> list[Column]:
    """Return the columns that fit; drop standard errors and intervals if then all columns fit."""
    first = list(dict.fromkeys(column.of for column in view.rest))[: view.most]
    rest = [column for column in view.rest if column.of in first]
    chosen = _with_room(view.keys, rest, width)
    if len(chosen) < len(rest):
        bare = [replace(column, more=(), legend="") for column in rest]
        fitting = _with_room(view.keys, bare, width)
        if not chosen or len(fitting) == len(rest):
            chosen = fitting or bare[:1]
    return [*view.keys, *chosen]


def _with_room(keys: Sequence[Column], rest: Sequence[Column], width: int) -> list[Column]:
    """Return the columns that fit; none if the first column does not fit."""
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


def _left_out(view: View, fields: Sequence[Column]) -> list[str]:
    """Return the headings of hidden columns, and the names of hidden standard errors and intervals."""
    chosen = {column.name: column for column in fields}
    unseen = {column.name: column for column in view.rest if column.name not in chosen}
    missing = [
        each.heading if each.of == each.name else printable(each.name)
        for each in unseen.values()
        if each.of == each.name or each.of not in unseen
    ]
    for each in view.rest:
        if each.name in chosen and each.more and not chosen[each.name].more:
            missing.append("standard errors" if each.legend.startswith("±") else "intervals")
    return list(dict.fromkeys(missing))


def _widths(fields: Sequence[Column], width: int) -> list[int]:
    """Return column widths that fit together: break headings first, then cut texts to one width."""
    room = width - _GAP * (len(fields) - 1)
    levels = range(room, -1, -1)
    widths: list[int] = []
    for text, heading in chain(zip(repeat(room), levels), zip(levels, repeat(0))):
        widths = [each.width(text, heading) for each in fields]
        if sum(widths) <= room:
            break
    return widths


def _broken(heading: str, width: int) -> list[str]:
    """Return a heading as lines of limited width."""
    lines = [""]
    for part in heading_parts(heading):
        if lines[-1] and columns(lines[-1] + part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return [line.rstrip() for line in lines]


def as_text(views: Sequence[View], notes: Sequence[str] = (), n_more: int = 0) -> str:
    """Return a `repr`: tables as in a terminal, the number of further tables, then the first notes."""
    width = max(40, shutil.get_terminal_size((100, 24)).columns)
    lines = [line for each in views for line in table_lines(each, width, ".to_pandas() has all")]
    lines += [f"... {plural(n_more, 'more table')}: .tables has them"] if n_more else []
    for note in first_notes(notes, ".notes"):
        first, *continuation = wrapped(f"- {note}", width - 2)
        lines += [first, *(f"  {line}" for line in continuation)]
    return "\n".join(lines)


def as_latex(views: Iterable[View], notes: Iterable[str] = ()) -> str:
    """Return a `table` with booktabs for each table; notes are comments."""
    lines = [r"% \usepackage{booktabs}", *(f"% {' '.join(note.split())}" for note in notes)]
    return "\n".join([*lines, *(line for each in views for line in _latex_lines(each))]) + "\n"


def _latex_lines(view: View) -> Iterator[str]:
    caption = _latex("; ".join(filter(None, [view.caption, *view.legend])))
    cells = (
        # A hyphen before a number becomes a minus sign.
        [_latex(text).replace("-", "$-$") if column.kind == "n" else _latex(text) for text in column.texts]
        for column in view.columns
    )
    rows = [[_latex(column.heading) for column in view.columns], *zip(*cells, strict=True)]
    head, *body = (rf"{' & '.join(row)} \\" for row in rows)
    sides = "".join("r" if column.kind == "n" else "l" for column in view.columns)
    yield from (r"\begin{table}", r"\centering", *([rf"\caption{{{caption}}}"] if caption else []))
    yield from (rf"\begin{{tabular}}{{{sides}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule")
    yield from (r"\end{tabular}", r"\end{table}")


def _latex(text: str) -> str:
    """Return a text with LaTeX's special characters escaped, and white space made single blanks."""
    return "".join(_SPECIAL.get(char, char) for char in " ".join(text.split()))
