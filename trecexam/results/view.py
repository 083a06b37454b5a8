"""What people are shown of a table: its columns in their order, and its cells as texts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import NamedTuple, TypeGuard

from trecexam.results.terminal import columns as columns_of
from trecexam.results.terminal import cut, cut_apart, printable
from trecexam.results.text import heading_parts, number

#: What people see in place of a number that there is not.
NO_VALUE = "–"  # noqa: RUF001
#: Numbers `NAME.WHAT` behind the values of the column NAME, with their texts in a line and on a page.
_SPREADS = (
    (("stderr",), "± standard error", ("±{}", "± {}")),
    (("low", "high"), "", ("[{}, {}]", "{} to {}")),
)
#: Letters in a cell of a page: of a text that is read, of a code, of a name; and of a text that is not cut.
_WIDE = {"text": 160, "code": 80, "name": 40, "n": 160}
_WHOLE = 1_000_000
#: The least width to which a text is cut in a line.
_LEAST = 4
#: What columns hold, by their names; the others hold names.
_KINDS = {
    **dict.fromkeys(("query and passage", "reason", "text", "why", "note", "file"), "text"),
    **dict.fromkeys(("item_id", "sha256"), "code"),
}

Value = str | int | float | None


@dataclass(frozen=True)
class Layout:
    """How a table is shown to people. Columns that a table does not have are ignored.

    `NAME.stderr`, or `NAME.low` and `NAME.high`, are the standard error or the interval of the column `NAME`,
    and are shown behind its values.

    Attributes:
        keys: the columns that each line begins with; () for the texts that the table begins with.
        first: the columns that come before all others.
        most: no more columns than this beside the keys, not counting what belongs to another (`NAME.what` or
            `NAME what` to NAME); None for as many as there is room for.
        without: columns that say nothing to people; only a table of any width has them.
        ranks: a rank for each row, from 1, in front of the keys; () for none.
        short: column -> a shorter name that people know it by; a table of any width has the column's own.
        interval: what `NAME.low` and `NAME.high` are, in words.
    """

    keys: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    most: int | None = None
    without: tuple[str, ...] = ()
    ranks: tuple[int | None, ...] = ()
    short: Mapping[str, str] = field(default_factory=dict)
    interval: str = "95% interval"


@dataclass(frozen=True)
class Rows:
    """Column names and rows.

    Attributes:
        digits: of floats in TSV, after the point; people are shown three that mean something, see `number`.
        small: columns in which a value that would be shown as 0, and is not, has an exponent.
        layout: how people are shown the rows.
        caption: what the rows are about; a line above them.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    digits: int = 6
    small: tuple[str, ...] = ()
    layout: Layout = Layout()
    caption: str = ""


@dataclass(frozen=True)
class Column:
    """A column as people read it: its heading, and its values as texts.

    Attributes:
        of: the column that it belongs to, as `NAME what` to NAME; else its own name.
        spread: the standard error or interval behind each value, "" where there is none; () for no spread.
        legend: what the spread is.
    """

    name: str
    of: str
    heading: str
    numeric: bool
    values: tuple[str, ...]
    spread: tuple[str, ...] = ()
    legend: str = ""

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The values with what stands behind them, both in line."""
        if not self.spread:
            return self.values
        value, spread = (max(map(len, texts)) for texts in (self.values, self.spread))
        return tuple(f"{a:>{value}} {b:>{spread}}" for a, b in zip(self.values, self.spread, strict=True))

    @cached_property
    def widest(self) -> int:
        """The columns of a terminal that the longest text takes."""
        return max(map(columns_of, self.texts), default=0)

    @property
    def natural(self) -> int:
        """The width at which nothing is cut."""
        return max(self.widest, columns_of(self.heading))

    def cut_to(self, width: int) -> Sequence[str]:
        """Return the texts at this width; those that differ stay different."""
        return self.texts if self.widest <= width else cut_apart(self.texts, width)

    def width(self, text: int, heading: int) -> int:
        """Return the width with texts cut to one width and the heading broken at another.

        Numbers are never cut; a heading breaks between its parts only.
        """
        widest = self.widest if self.numeric else min(self.widest, max(text, _LEAST))
        parts = map(columns_of, heading_parts(self.heading))
        return max(widest, min(columns_of(self.heading), heading), *parts)


class View(NamedTuple):
    """What people are shown of a table: the columns that each line begins with, and the other columns."""

    caption: str
    keys: tuple[Column, ...]
    rest: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns."""
        return (*self.keys, *self.rest)


def view(table: Rows, *, wide: bool = False, places: Sequence[int] | None = None, page: bool = False) -> View:
    """Return a table's columns for people, in the order of its layout.

    Columns without any value are left out; the first column of a table stays.

    Args:
        wide: with all columns, each by its own name.
        places: of the rows that are shown; None for all.
        page: numbers are written as on a page.
    """
    places = range(len(table.rows)) if places is None else places
    layout, values = table.layout, dict(by_column(table))
    types = {name: {type(value) for value in values[name] if value not in ("", None)} for name in values}
    leading = layout.keys or tuple(itertools.takewhile(lambda name: types[name] <= {str}, values))
    # The first column stays even without a value: a row without columns would be no row.
    kept = {*leading, *table.header[:1]}
    picked = {name: [column[place] for place in places] for name, column in values.items()}
    digits = min(table.digits, 3)
    columns = {}
    for name, column in values.items():
        of = next((each for each in values if name.startswith((f"{each}.", f"{each} "))), name)
        is_spread = any(name == f"{of}.{what}" for parts, *_ in _SPREADS for what in parts)
        is_empty = name not in kept and bool(table.rows) and not any(map(_exists, column))
        if is_spread or ((is_empty or name in layout.without) and not wide):
            continue
        least = 0.5 * 10**-digits if name in table.small else 0.0
        texts = column_texts(picked[name], partial(number, digits=digits), least, thousands=page)
        heading = printable(name if wide else layout.short.get(name, name))
        spread, legend = _spread(name, picked, layout.interval, page=page)
        numeric = bool(types[name]) and str not in types[name]
        columns[name] = Column(name, of, heading, numeric, tuple(texts), spread, legend)
    keys = [columns.pop(name) for name in leading if name in columns]
    if layout.ranks:
        ranks = (layout.ranks[place] for place in places)
        texts = [NO_VALUE if rank is None else str(rank) for rank in ranks]
        keys.insert(0, Column("rank", "rank", "rank", True, tuple(texts)))
    order = list(dict.fromkeys([*(name for name in layout.first if name in columns), *columns]))
    # Each followed by what belongs to it.
    rest = sorted(
        columns.values(),
        key=lambda each: (order.index(each.of if each.of in order else each.name), each.of != each.name),
    )
    return View(printable(table.caption), tuple(keys), tuple(rest))


def _spread(
    name: str, values: Mapping[str, Sequence[Value]], interval: str, *, page: bool
) -> tuple[tuple[str, ...], str]:
    """Return the texts behind each value of a column, "" where a number is missing, and what they are."""
    for parts, legend, forms in _SPREADS:
        if values.keys() >= {f"{name}.{part}" for part in parts}:
            rows = zip(*(values[f"{name}.{part}"] for part in parts), strict=True)
            texts = tuple(
                forms[page].format(*map(number, row)) if all(map(_is_number, row)) else "" for row in rows
            )
            return (texts, legend or f"[{interval}]") if any(texts) else ((), "")
    return (), ""


class PageColumn(NamedTuple):
    """A column of an excerpt; `kind` is "n" for numbers, else "text", "code" or "name"."""

    heading: str
    kind: str
    name: str = ""


class Cell(NamedTuple):
    """A value, and what is below it: its interval, its standard error."""

    text: str
    below: tuple[str, ...] = ()


@dataclass(frozen=True)
class Excerpt:
    """Rows of a table as a page shows them.

    Attributes:
        total: how many rows the whole table has.
        file: where they are, relative to the page; "" for nowhere.
        name: the place of the column that says what a row is about; None where no column does.
    """

    columns: tuple[PageColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int
    file: str
    caption: str
    name: int | None = None


def excerpt(
    table: Rows,
    most: int,
    file: str = "",
    *,
    whole: bool = False,
    places: Sequence[int] | None = None,
) -> Excerpt:
    """Return the first rows as the table's layout says: its order, its short names, its ranks.

    Of a column `NAME`, its standard error or interval and all other `NAME.WHAT` stand below the values.

    Args:
        whole: texts are not cut.
        places: of the rows, in their order; None for the first. Columns are those that have values in all.
    """
    layout, total = table.layout, len(table.rows)
    if places is None:
        table = replace(table, rows=table.rows[:most])
    shown = view(table, places=places, page=True)
    below = [each for each in shown.rest if each.name.startswith(f"{each.of}.")]
    rest = [each for each in shown.rest if each not in below]
    columns: list[PageColumn] = []
    cells: list[list[Cell]] = []
    for column in (*shown.keys, *rest[: layout.most]):
        is_rank = layout.ranks and not columns
        kind = "n" if column.numeric else _KINDS.get(column.name, "name")
        columns.append(PageColumn("#", kind) if is_rank else PageColumn(column.heading, kind, column.name))
        width, empty = _WHOLE if whole else _WIDE[kind], NO_VALUE if kind == "n" else ""
        texts = (cut(text, width, middle=True) or empty for text in column.values)
        spread = column.spread or [""] * len(column.values)
        more = [each.values for each in below if each.of == column.name]
        cells.append(
            [Cell(text, tuple(filter(None, of))) for text, *of in zip(texts, spread, *more, strict=True)]
        )
    has_name = set(layout.keys) & {column.name for column in shown.keys}
    name_at = int(bool(layout.ranks)) if has_name else None
    return Excerpt(tuple(columns), tuple(zip(*cells, strict=True)), total, file, table.caption, name_at)


def _exists(value: Value) -> bool:
    return bool(value) if isinstance(value, str) else _is_number(value)


def _is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and math.isfinite(value)


def by_column(table: Rows) -> Iterator[tuple[str, Sequence[Value]]]:
    """Return the table's columns, with their names."""
    # Of a hundred thousand rows zip(*rows) takes half a second.
    return ((name, [row[i] for row in table.rows]) for i, name in enumerate(table.header))


def column_texts(
    values: Sequence[Value], form: Callable[[float], str], least: float, *, thousands: bool = False
) -> list[str]:
    """Return the texts of a column. Of millions of values most are floats, or names that come again.

    Args:
        form: writes a float; a rounding below 0 is no "-0.000000".
        least: a value below it, but for 0, has an exponent.
        thousands: whole numbers have commas.
    """
    name_text = cache(printable)
    texts = []
    for value in values:
        if isinstance(value, float):
            if not math.isfinite(value):
                texts.append("")
            else:
                texts.append(f"{value:.1e}" if least and 0 < abs(value) < least else form(value))
        elif isinstance(value, str):
            texts.append(name_text(value))
        elif value is None:
            texts.append("")
        else:
            texts.append(f"{value:,}" if thousands and not isinstance(value, bool) else str(value))
    return texts
