"""Views of tables, the columns and texts to display, and their printers for a terminal and for LaTeX."""

from __future__ import annotations

import shutil
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from trecexam.results.terminal import columns, cut_apart, padded, wrapped
from trecexam.results.text import first_notes, heading_parts, plural, shorten_list

#: Placeholder for a missing number.
NO_VALUE = "–"  # noqa: RUF001
#: Blanks between columns.
_GAP = 2
#: Share of the width to which a text column is cut before a number column is left out.
_TEXT = 0.3
#: Minimum width of a text after cutting.
_LEAST = 4
#: Maximum number of tables in a `repr`, and of rows in total.
MOST_TABLES, MOST_ROWS = 4, 24
_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_SPECIAL |= {char: f"\\{char}" for char in "&%$#_{}"}


@dataclass(frozen=True)
class Column:
    """A displayed column: its heading, and its values as texts.

    Attributes:
        name: name in the table; "" for ranks.
        owner: the column that this column belongs to, as `NAME what` to NAME; else its own name.
        kind: "n" for numbers, else "text", "code" or "name".
        more: texts beside each value, the standard error or the interval; "" if missing. On a page also all
            other `NAME.WHAT`, below the value.
        legend: description of the standard error or interval.
    """

    name: str
    owner: str
    heading: str
    kind: str
    values: tuple[str, ...]
    more: tuple[tuple[str, ...], ...] = ()
    legend: str = ""

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Values, each with its standard error or interval in the same line."""
        if not self.more:
            return self.values
        parts = (self.values, *self.more)
        widths = [max(map(len, texts), default=0) for texts in parts]
        return tuple(" ".join(map(str.rjust, row, widths)) for row in zip(*parts, strict=True))

    @cached_property
    def widest(self) -> int:
        """Width of the longest text, in terminal columns."""
        return max(map(columns, self.texts), default=0)

    def width(self, text: int, *, whole: bool) -> int:
        """Return the width after cutting texts and, unless `whole`, breaking the heading."""
        parts = [self.heading] if whole else heading_parts(self.heading)
        return max(self.widest if self.kind == "n" else min(self.widest, text), *map(columns, parts))


class View(NamedTuple):
    """Displayed columns and rows of a table.

    Attributes:
        keys: the columns at the start of each line.
        rest: the other columns.
        n_rows: number of rows in this view, of `total` in the table.
    """

    caption: str
    keys: tuple[Column, ...]
    rest: tuple[Column, ...]
    n_rows: int
    total: int

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the view: keys, then the rest."""
        return (*self.keys, *self.rest)


def legend(shown: Sequence[Column]) -> list[str]:
    """Return the descriptions of the standard errors and intervals beside values."""
    return list(dict.fromkeys(column.legend for column in shown if column.legend))


def table_lines(
    view: View,
    width: int,
    has_all: str,
    *,
    heading: Callable[[str], str] = str,
    last: Callable[[str], str] = str,
) -> Iterator[str]:
    """Yield a table's caption, heading and rows, and a line on hidden columns and rows.

    The keys and the first other column always appear; further columns follow while they fit. For more to fit,
    headings break over lines, intervals go, and texts are cut.

    Args:
        width: width of a line, at least 40.
        has_all: the option or method that gives the whole table, for the last line.
        heading, last: functions that style a heading line and the last line.
    """
    text, n_keys = int(_TEXT * width), len(view.keys)
    bare = tuple(replace(each, more=(), legend="") if each.legend[:1] == "[" else each for each in view.rest)
    forms = ((view.rest, True), (view.rest, False), (bare, False))
    sums = ([*accumulate(c.width(text, whole=w) + _GAP for c in (*view.keys, *rest))] for rest, w in forms)
    counts = [bisect_right(ends, width + _GAP) - n_keys for ends in sums]
    # The first form in which all columns fit; else as many as fit.
    chosen = next((n for n in range(3) if counts[n] == len(bare)), 1 if counts[1] > 0 else 2)
    (rest, whole), n_shown = forms[chosen], max(1, counts[chosen])
    shown, hidden = (*view.keys, *rest[:n_shown]), rest[n_shown:]
    room = width - _GAP * (len(shown) - 1)
    widths: list[int] = []
    for level in range(max(room, _LEAST), _LEAST - 1, -1):
        widths = [column.width(level, whole=whole) for column in shown]
        if sum(widths) <= room:
            break
    heads = [_broken(column.heading, most) for column, most in zip(shown, widths, strict=True)]
    n_heads = max(map(len, heads), default=0)
    cells = []
    for column, most, head in zip(shown, widths, heads, strict=True):
        texts = column.texts if column.widest <= most else cut_apart(column.texts, most)
        texts = (*[""] * (n_heads - len(head)), *head, *texts)
        cells.append([padded(text, most, right=column.kind == "n") for text in texts])
    lines = [(" " * _GAP).join(line).rstrip() for line in zip(*cells, strict=True)]
    yield from wrapped(view.caption, width)
    yield from map(heading, lines[:n_heads])
    yield from lines[n_heads:]
    more = view.total - view.n_rows
    yield from [f"... {plural(more, 'more row')}"] if more else []
    names = {column.name for column in hidden}
    missing = [words for words in legend(view.rest) if words not in legend(rest)]
    missing += [each.heading for each in hidden if each.owner == each.name or each.owner not in names]
    left_out = [f"left out: {shorten_list(missing, 4, quote='')}"] if missing else []
    left_out += (
        ["long names are cut"]
        if any(each.widest > most for each, most in zip(shown, widths, strict=True))
        else []
    )
    parts = [*legend(shown), *left_out, *([has_all] if left_out or more else [])]
    yield from map(last, wrapped("; ".join(parts), width))


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
    head = r"% \usepackage{booktabs} \usepackage[T1]{fontenc}"
    lines = [head, *(f"% {' '.join(note.split())}" for note in notes)]
    return "\n".join([*lines, *(line for each in views for line in _latex_lines(each))]) + "\n"


def _latex_lines(view: View) -> Iterator[str]:
    caption = _latex("; ".join(filter(None, [view.caption, *legend(view.columns)])))
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
