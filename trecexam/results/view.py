"""What people are shown of a table: its columns in their order, and its cells as texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

from trecexam.results.terminal import columns as columns_of
from trecexam.results.terminal import printable
from trecexam.results.text import number

#: What people see in place of a number that there is not.
NO_VALUE = "–"  # noqa: RUF001
#: Columns `NAME.stderr`, `NAME.low` and `NAME.high` stand behind the values of the column NAME.
_SPREAD = ("stderr", "low", "high")


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
        split: nothing is left out: what has no room is in another table below, with the same keys.
        ranks: a rank for each row, from 1, in front of the keys; () for none.
        short: column -> a shorter name that people know it by; a table of any width has the column's own.
        interval: what `NAME.low` and `NAME.high` are, in words.
    """

    keys: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    most: int | None = None
    without: tuple[str, ...] = ()
    split: bool = False
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
    """A column as people read it.

    Attributes:
        name: the column's name in the table; "rank" for ranks.
        of: the column that it belongs to, as `NAME what` to NAME; else its own name.
        heading: its name for people.
        numeric: whether texts are set to the right.
        values: the texts of its values.
        spread: the numbers that stand behind each value: its standard error, or the ends of its interval; ()
            where a number is missing, or nothing stands behind the values.
        legend: what they are.
    """

    name: str
    of: str
    heading: str
    numeric: bool
    values: tuple[str, ...]
    spread: tuple[tuple[str, ...], ...] = ()
    legend: str = ""

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The values with what stands behind them, both in line."""
        if not self.spread:
            return self.values
        spreads = [
            f"±{ends[0]}" if len(ends) == 1 else f"[{', '.join(ends)}]" if ends else ""
            for ends in self.spread
        ]
        value, spread = max(map(len, self.values)), max(map(len, spreads))
        return tuple(f"{a:>{value}} {b:>{spread}}" for a, b in zip(self.values, spreads, strict=True))

    @cached_property
    def widest(self) -> int:
        """The columns of a terminal that the longest text takes."""
        return max(map(columns_of, self.texts), default=0)

    @property
    def natural(self) -> int:
        """The width at which nothing is cut."""
        return max(self.widest, columns_of(self.heading))


class View(NamedTuple):
    """What people are shown of a table.

    Attributes:
        keys: the columns that each line begins with.
        rest: the other columns.
    """

    caption: str
    keys: tuple[Column, ...]
    rest: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns."""
        return (*self.keys, *self.rest)

    @property
    def legend(self) -> list[str]:
        """What stands behind values."""
        return list(dict.fromkeys(column.legend for column in self.columns if column.legend))


def view(
    table: Rows,
    *,
    wide: bool = False,
    places: Sequence[int] | None = None,
    whole: Callable[[int], str] = str,
) -> View:
    """Return a table's columns for people, in the order of its layout.

    Args:
        wide: with the columns that say nothing to people, each by its own name.
        places: of the rows that are shown; None for all.
        whole: writes a whole number.
    """
    places = range(len(table.rows)) if places is None else places
    layout, values = table.layout, dict(by_column(table))
    picked = {name: [column[place] for place in places] for name, column in values.items()}
    columns = {}
    for name in values:
        of = next((each for each in values if name.startswith((f"{each}.", f"{each} "))), name)
        if name in {f"{of}.{what}" for what in _SPREAD} or (name in layout.without and not wide):
            continue
        digits = min(table.digits, 3)
        least = 0.5 * 10**-digits if name in table.small else 0.0
        texts = column_texts(picked[name], partial(number, digits=digits), least, whole)
        spread, legend = _spread(name, picked, layout.interval)
        heading = printable(name if wide else layout.short.get(name, name))
        columns[name] = Column(name, of, heading, is_numeric(values[name]), tuple(texts), spread, legend)
    leading = layout.keys or _leading_texts(values)
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
    name: str, values: Mapping[str, Sequence[Value]], interval: str
) -> tuple[tuple[tuple[str, ...], ...], str]:
    """Return the numbers behind each value of a column, () where one is missing, and what they are."""
    for names, legend in (
        ([f"{name}.stderr"], "± standard error"),
        ([f"{name}.low", f"{name}.high"], f"[{interval}]"),
    ):
        if values.keys() >= set(names):
            rows = zip(*(values[each] for each in names), strict=True)
            spread = tuple(
                tuple(
                    number(value) for value in row if isinstance(value, int | float) and math.isfinite(value)
                )
                for row in rows
            )
            spread = tuple(ends if len(ends) == len(names) else () for ends in spread)
            return (spread, legend) if any(spread) else ((), "")
    return (), ""


def _leading_texts(values: Mapping[str, Sequence[Value]]) -> Iterator[str]:
    for name, column in values.items():
        if any(isinstance(value, int | float) for value in column):
            return
        yield name


def is_numeric(values: Sequence[Value]) -> bool:
    """Return True for a column of numbers, without any text."""
    return any(isinstance(value, int | float) for value in values) and not any(
        isinstance(value, str) and value for value in values
    )


def by_column(table: Rows) -> Iterator[tuple[str, Sequence[Value]]]:
    """Return the table's columns, with their names."""
    # Of a hundred thousand rows zip(*rows) takes half a second.
    return ((name, [row[i] for row in table.rows]) for i, name in enumerate(table.header))


def column_texts(
    values: Sequence[Value],
    form: Callable[[float], str],
    least: float,
    whole: Callable[[int], str] = str,
) -> list[str]:
    """Return the texts of a column. Of millions of values most are floats, or names that come again.

    Args:
        form: writes a float; a rounding below 0 is no "-0.000000".
        least: a value below it, but for 0, has an exponent.
        whole: writes a whole number.
    """
    names: dict[str, str] = {}
    texts = []
    for value in values:
        if isinstance(value, float):
            if not math.isfinite(value):
                texts.append("")
            else:
                texts.append(f"{value:.1e}" if value and abs(value) < least else form(value))
        elif isinstance(value, str):
            text = names.get(value)
            if text is None:
                text = names[value] = printable(value)
            texts.append(text)
        else:
            texts.append("" if value is None else whole(value))
    return texts
