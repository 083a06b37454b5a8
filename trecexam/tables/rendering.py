"""Tables with their notes as people read them: in a terminal, in a notebook, in a paper."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from trecexam.tables.fitted import cells_of, fitted
from trecexam.tables.html import html_notes, html_table
from trecexam.tables.notes import first_notes, standing_notes
from trecexam.tables.table import Table
from trecexam.tables.terminal import printable, wrapped
from trecexam.tables.text import plural, shorten_list

#: Lines of a `repr`.
LINES = 40
#: So many tables are shown in a `repr`, and in a notebook.
_TABLES, _HTML_TABLES = 4, 10
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
} | {char: f"\\{char}" for char in "&%$#_{}"}


def as_text(tables: Sequence[Table], notes: Sequence[str] = ()) -> str:
    """What a `repr` is: the tables as a terminal shows them, then the notes; at most `LINES` lines."""
    width = max(40, shutil.get_terminal_size((100, 24)).columns)
    below = [
        line if n == 0 else f"  {line}"
        for note in _notes_below(notes)
        for n, line in enumerate(wrapped(f"- {note}", width - 2))
    ]
    left = LINES - len(below)
    lines: list[str] = []
    # Of many a few with some rows each say more than all with one.
    left -= len(tables) > _TABLES
    at_once = min(len(tables), _TABLES)
    for number, table in enumerate(tables):
        if number and (left < 7 or number == at_once):
            lines.append(f"... {plural(len(tables) - number, 'more table')}: .tables has them")
            break
        table_lines = list(_table_lines(table, width, left // (at_once - number) - 1))
        lines += table_lines
        left -= len(table_lines)
    return "\n".join([*lines, *below])


def _notes_below(notes: Sequence[str]) -> list[str]:
    """Return the standing notes in short, as a terminal has them below the table, then the first others."""
    standing = standing_notes(notes)
    others = [note for note in notes if note not in standing]
    return [*(note.partition(";")[0] for note in standing), *first_notes(others, ".notes")]


def _table_lines(table: Table, width: int, most: int) -> Iterator[str]:
    """The caption, the heading, the first rows, and what is not here; about `most` lines."""
    caption = wrapped(printable(table.caption), width, most=2)
    most = max(1, most - 3 - max(1, len(caption)))
    first = replace(
        table,
        rows=table.rows[:most],
        layout=replace(table.layout, split=False, ranks=table.layout.ranks[:most]),
    )
    yield from caption
    fit = fitted(first, width)
    heading, rows = fit.tables[0]
    yield from (*heading, *rows)
    more = len(table.rows) - most
    if more > 0:
        yield f"... {plural(more, 'more row')}"
    left_out = [f"left out: {shorten_list(fit.left_out, 4, quote='')}"] if fit.left_out else []
    has_all = [".to_pandas() has all"] if left_out or more > 0 else []
    if last := "; ".join([*fit.legend, *left_out, *has_all]):
        yield from wrapped(last, width, most=2)


def as_html(tables: Sequence[Table], notes: Sequence[str] = ()) -> str:
    """What a notebook shows: the tables' first rows, then the notes; everything escaped."""
    parts = []
    for table in tables[:_HTML_TABLES]:
        cells = cells_of(table)
        parts.append(html_table(cells.header, cells.numeric, cells.rows, table.caption, cells.legend))
    more = len(tables) - _HTML_TABLES
    below = [f"{plural(more, 'more table')}: .tables has them"] if more > 0 else []
    return "".join([*parts, html_notes([*below, *_notes_below(notes)])])


def as_latex(tables: Iterable[Table], notes: Iterable[str] = ()) -> str:
    """A `table` with booktabs for each table; notes are comments."""
    lines = [r"% \usepackage{booktabs}", *(f"% {' '.join(note.split())}" for note in notes)]
    return "\n".join([*lines, *map(_latex_table, tables)]) + "\n"


def latex_text(text: str) -> str:
    """A text as LaTeX prints it: special characters escaped, white space made single blanks."""
    return "".join(_SPECIAL.get(char, char) for char in " ".join(text.split()))


def _latex_table(table: Table) -> str:
    cells = cells_of(table)
    lines = [r"\begin{table}", r"\centering"]
    caption = "; ".join(filter(None, [table.caption, *cells.legend]))
    lines += [rf"\caption{{{latex_text(caption)}}}"] if caption else []
    lines += [
        rf"\begin{{tabular}}{{{''.join('r' if each else 'l' for each in cells.numeric)}}}",
        r"\toprule",
        _latex_row(map(latex_text, cells.header)),
        r"\midrule",
        *(
            _latex_row(
                # A hyphen before a number is a minus.
                latex_text(text).replace("-", "$-$") if numeric else latex_text(text)
                for text, numeric in zip(row, cells.numeric, strict=True)
            )
            for row in cells.rows
        ),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"
