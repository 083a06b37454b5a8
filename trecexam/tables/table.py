"""Tables as rows of values, and their three renderings: TSV for programs, aligned for people, JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from itertools import groupby
from typing import Any

from trecexam.tables.frames import Framed, texts
from trecexam.tables.html import html_table
from trecexam.tables.terminal import columns, padded, printable, printable_json
from trecexam.tables.text import number, plural

#: Rows of a table's `repr`.
_ROWS = 30
#: What people see in place of a number that there is not.
NO_VALUE = "–"  # noqa: RUF001
#: An error lists so many columns; of more so many that are most like what was asked for.
_LISTED, _NEAR = 8, 4
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


def only_named(name: str, columns: Iterable[str]) -> str | None:
    """The one of the columns `GRADER:NAME` that has this name behind the grader's; None unless it is one."""
    matches = [column for column in columns if column.endswith(f":{name}")]
    return matches[0] if len(matches) == 1 else None


def headed(name: str, short: Mapping[str, str]) -> str | None:
    """The column that people are shown by this name, see `Layout.short`; None where there is none."""
    heading, dot, of = str(name).partition(".")
    return next((f"{column}{dot}{of}" for column, short_name in short.items() if short_name == heading), None)


def nearest(name: str, columns: Sequence[str]) -> str:
    """The columns; of many the few that are most like a name, and how many more there are."""
    if len(columns) <= _LISTED:
        return ", ".join(columns)
    near = get_close_matches(str(name), columns, _NEAR, cutoff=0.4) or columns[:_NEAR]
    return f"{', '.join(near)} and {len(columns) - len(near):,} more"


def contains(table: Any, name: object) -> bool:
    """Whether a table, or a result, has a column or a row of this name: what `table[name]` gives."""
    if not isinstance(name, str):
        return any(row == name for row in table)
    try:
        table[name]
    except KeyError:
        return False
    return True


class TableRow(dict[str, Value]):
    """A row of a table: `row["run"]`, or `row.run`; columns also by the headings that people are shown."""

    _short: Mapping[str, str] = {}

    def __getattr__(self, name: str) -> Value:
        if name in self:
            return self[name]
        raise AttributeError(
            f"a row has no {name!r}; use row[COLUMN] with one of {nearest(name, list(self))}"
        )

    def __missing__(self, name: str) -> Value:
        if (column := headed(name, self._short) or only_named(name, self)) is not None:
            return self[column]
        raise KeyError(f"a row has no column {name!r}; it has {nearest(name, list(self))}")


@dataclass(frozen=True, repr=False)
class Table(Framed):
    """Column names and rows. A None or NaN is an empty field in TSV, null in JSON.

    Attributes:
        digits: of floats in TSV, after the point; people are shown three that mean something, see `number`.
        small: columns in which a value that would be shown as 0, and is not, has an exponent.
        layout: how people are shown the table.
        caption: what the table is about; a line above it.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    digits: int = 6
    small: tuple[str, ...] = ()
    layout: Layout = Layout()
    caption: str = ""

    def __repr__(self) -> str:
        text = to_aligned(replace(self, rows=self.rows[:_ROWS]))
        more = len(self.rows) - _ROWS
        return text + (f"... {plural(more, 'more row')}" if more > 0 else "")

    def __iter__(self) -> Iterator[TableRow]:
        return map(self._row, self.rows)

    def _row(self, values: Sequence[Value]) -> TableRow:
        row = TableRow(zip(self.header, values, strict=True))
        if self.layout.short:
            row._short = self.layout.short
        return row

    def __len__(self) -> int:
        return len(self.rows)

    def __bool__(self) -> bool:
        # A table without rows is a table, too.
        return True

    def __contains__(self, name: object) -> bool:
        return contains(self, name)

    def __getitem__(self, name: str) -> Any:
        """A column by its name, as a list; or the row whose first column has this value.

        A column also by the heading that people are shown. Of a column `NAME:MEASURE` the measure is enough
        where no other grader has it.

        Where several rows have it: a table of these.

        Raises:
            KeyError: neither a column nor a row; it names the columns.
        """
        if name in self.header:
            column_index = self.header.index(name)
            return [row[column_index] for row in self.rows]
        matches = tuple(row for row in self.rows if row and row[0] == name)
        column = None if matches else headed(name, self.layout.short) or only_named(name, self.header)
        if column in self.header:
            return self[column]
        if not matches:
            raise KeyError(
                f"{name!r} is neither a column nor a {self.header[0]} of a row; columns: "
                f"{nearest(name, self._headings())}"
            )
        return self._row(matches[0]) if len(matches) == 1 else replace(self, rows=matches)

    def _headings(self) -> list[str]:
        """The columns as people are shown them, without what is shown behind their values."""
        names = (name for name in self.header if not name.endswith((".stderr", ".low", ".high")))
        return [self.layout.short.get(name, name) for name in names]

    def grouped(self, *names: str) -> Iterator[tuple[tuple[Value, ...], Table]]:
        """What rows have in these columns, and a table of the rows that have it, without these columns.

        Rows of one group are next to each other.
        """
        key_indices = [self.header.index(name) for name in names]
        rest = [i for i in range(len(self.header)) if i not in key_indices]
        header = tuple(self.header[i] for i in rest)
        for key, rows in groupby(self.rows, lambda row: tuple(row[i] for i in key_indices)):
            cells = tuple(tuple(row[i] for i in rest) for row in rows)
            yield key, replace(self, header=header, rows=cells)

    def columns(self) -> dict[str, Any]:
        """The columns, None and NaN as they are; one of texts and numbers is of texts."""
        return {name: _typed(values) for name, values in by_column(self)}

    def _repr_html_(self) -> str:
        """What a notebook shows: the first rows, floats with three digits."""
        cells = [texts_for_people(values, self, name) for name, values in by_column(self)]
        numeric = [any(isinstance(value, int | float) for value in values) for _, values in by_column(self)]
        return html_table(self.header, numeric, list(zip(*cells, strict=True)), self.caption)

    def records(self) -> list[dict[str, Value]]:
        """The rows as JSON-ready objects."""
        return [dict(zip(self.header, map(_finite, row), strict=True)) for row in self.rows]


def rounded(table: Table, digits: int) -> Table:
    """Round a table's floats, for files, people and JSON: further digits are not certain."""
    rows = (tuple(round(v, digits) + 0.0 if isinstance(v, float) else v for v in row) for row in table.rows)
    return replace(table, rows=tuple(rows), digits=digits)


def to_tsv(table: Table) -> str:
    """A header line and a line a row; tabs and line ends in a value become spaces.

    What could steer a terminal is escaped: see `trecexam.tables.terminal.printable`.
    """
    form = f"{{:z.{table.digits}f}}".format
    columns = [
        column_texts(values, form, 0.5 * 10**-table.digits if name in table.small else 0.0)
        for name, values in by_column(table)
    ]
    lines = ["\t".join(map(printable, table.header)), *map("\t".join, zip(*columns, strict=True))]
    return "\n".join(lines) + "\n"


def to_aligned(table: Table) -> str:
    """Columns padded with spaces, numbers to the right; floats with three digits."""
    fields_of = [texts_for_people(values, table, name) for name, values in by_column(table)]
    cells = [list(map(printable, table.header)), *map(list, zip(*fields_of, strict=True))]
    widths = [max(columns(row[column]) for row in cells) for column in range(len(table.header))]
    numeric = [
        any(isinstance(row[column], int | float) for row in table.rows) for column in range(len(table.header))
    ]
    lines = []
    for row in cells:
        fields = (
            padded(value, width, right=right)
            for value, width, right in zip(row, widths, numeric, strict=True)
        )
        lines.append("  ".join(fields).rstrip())
    return "\n".join(lines) + "\n"


def to_json(value: Any) -> str:
    """Indented JSON in which NaN and infinity are null, so that every parser takes it."""
    return printable_json(json.dumps(_clean(value), indent=1, ensure_ascii=False, allow_nan=False)) + "\n"


def by_column(table: Table) -> Iterator[tuple[str, Sequence[Value]]]:
    """The table's columns, with their names."""
    # Of a hundred thousand rows zip(*rows) takes half a second.
    return ((name, [row[i] for row in table.rows]) for i, name in enumerate(table.header))


def texts_for_people(values: Sequence[Value], table: Table, name: str) -> list[str]:
    """Return the texts of a column of a table, floats with three digits that mean something."""
    digits = min(table.digits, 3)
    least = 0.5 * 10**-digits if name in table.small else 0.0
    return column_texts(values, partial(number, digits=digits), least)


def column_texts(values: Sequence[Value], form: Callable[[float], str], least: float) -> list[str]:
    """Return the texts of a column. Of millions of values most are floats, or names that come again.

    Args:
        form: writes a float; a rounding below 0 is no "-0.000000".
        least: a value below it, but for 0, has an exponent.
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
            texts.append("" if value is None else str(value))
    return texts


def _typed(values: Sequence[Value]) -> Any:
    import pyarrow as pa

    try:
        return pa.array(values)
    except pa.ArrowException:
        return texts([None if value is None else str(value) for value in values])


def _finite(value: Value) -> Value:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(inner) for inner in value]
    return _finite(value)
