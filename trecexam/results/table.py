"""Tables as rows of values: TSV and JSON for programs, and columns for people."""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, TypeGuard

from converters.errors import CONTROLS
from trecexam.results.frames import Framed, texts
from trecexam.results.html import as_html
from trecexam.results.printers import MOST_ROWS, NO_VALUE, as_text
from trecexam.results.terminal import cut, printable
from trecexam.results.text import number, shorten_list
from trecexam.results.view import Column, View

#: Numbers `NAME.WHAT` behind the values of the column NAME, with their texts in a line and on a page.
_SPREADS = (
    (("stderr",), "± standard error", ("±{}", "± {}")),
    (("low", "high"), "", ("[{}, {}]", "{} to {}")),
)
_SPREAD_PARTS = ("stderr", "low", "high")
#: Letters in a cell of a page, by kind of column.
_WIDE = {"text": 160, "code": 80, "name": 40, "n": 160}
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


def only_named(name: str, columns: Iterable[str]) -> str | None:
    """Return the column `GRADER:NAME` with this name behind the grader's; None unless there is one."""
    matches = [column for column in columns if column.endswith(f":{name}")]
    return matches[0] if len(matches) == 1 else None


@dataclass(frozen=True, repr=False)
class Table(Framed):
    """Column names and rows. A None or NaN is an empty field in TSV, null in JSON.

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

    def __repr__(self) -> str:
        return as_text([self.view(MOST_ROWS)])

    def _repr_html_(self) -> str:
        return as_html([self.view(MOST_ROWS, page=True)])

    def __iter__(self) -> Iterator[dict[str, Value]]:
        return (dict(zip(self.header, row, strict=True)) for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __bool__(self) -> bool:
        # A table without rows is a table, too.
        return True

    def __contains__(self, name: object) -> bool:
        """Return True for the name of a column or a row: what `table[name]` gives."""
        try:
            self[name]  # type: ignore[index]
        except KeyError:
            return False
        return True

    def __getitem__(self, name: str) -> Any:
        """Return a column by its name, as a list; or the row whose first column has this value, as a dict.

        Of a column `NAME:MEASURE` the measure is enough where no other grader has it.

        Where several rows have it: a table of these.

        Raises:
            KeyError: neither a column nor a row; it names the columns.
        """
        rows = tuple(row for row in self.rows if row and row[0] == name)
        column = name if name in self.header or rows else only_named(name, self.header)
        if column in self.header:
            column_index = self.header.index(column)
            return [row[column_index] for row in self.rows]
        if not rows:
            names = [each for each in self.header if not each.endswith((".stderr", ".low", ".high"))]
            raise KeyError(
                f"{name!r} is neither a column nor a {self.header[0]} of a row; columns: "
                f"{shorten_list(names, quote='')}"
            )
        return dict(zip(self.header, rows[0], strict=True)) if len(rows) == 1 else replace(self, rows=rows)

    def grouped(self, *names: str) -> Iterator[tuple[tuple[Value, ...], Table]]:
        """Yield the values of these columns, and a table of the rows that have them, without these columns.

        Rows of one group are next to each other.
        """
        key_indices = [self.header.index(name) for name in names]
        rest = [i for i in range(len(self.header)) if i not in key_indices]
        header = tuple(self.header[i] for i in rest)
        for key, rows in itertools.groupby(self.rows, lambda row: tuple(row[i] for i in key_indices)):
            cells = tuple(tuple(row[i] for i in rest) for row in rows)
            yield key, replace(self, header=header, rows=cells)

    def columns(self) -> dict[str, Any]:
        """Return the columns, None and NaN as they are; a column of texts and numbers is of texts."""
        import pyarrow as pa

        columns = {}
        for name, values in self._by_column(self.rows).items():
            try:
                columns[name] = pa.array(values)
            except pa.ArrowException:
                columns[name] = texts([None if value is None else str(value) for value in values])
        return columns

    def records(self) -> list[dict[str, Value]]:
        """Return the rows as JSON-ready objects."""
        rows: list[dict[str, Value]] = _clean(list(self))
        return rows

    def view(
        self,
        most: int | None = None,
        *,
        wide: bool = False,
        page: bool = False,
        rows: Sequence[int] | None = None,
    ) -> View:
        """Return the columns for people, in the order of the layout.

        Columns without any value are left out; the first column of a table stays.

        Args:
            most: show the first rows alone; None for all.
            wide: with all columns, each by its own name.
            page: for HTML: numbers have commas, long texts are cut, and all `NAME.WHAT` are below the values
                of NAME.
            rows: show these rows, in their order, with whole texts. Columns are those that have values in all
                rows.
        """
        layout, values = self.layout, self._by_column(self.rows[:most])
        n_rows = len(self.rows[:most])
        chosen = range(n_rows) if rows is None else rows
        types = {name: {type(value) for value in values[name] if value not in ("", None)} for name in values}
        leading = layout.keys or tuple(itertools.takewhile(lambda name: types[name] <= {str}, values))
        # The first column stays even without a value: a row without columns would be no row.
        stays = {*leading, *self.header[:1]}
        picked = values
        if rows is not None:
            picked = {name: [column[row] for row in rows] for name, column in values.items()}
        digits = min(self.digits, 3)
        columns = {}
        for name, column in values.items():
            of = next((each for each in values if name.startswith((f"{each}.", f"{each} "))), name)
            is_spread = name.removeprefix(f"{of}.") in _SPREAD_PARTS
            is_empty = name not in stays and n_rows > 0 and not any(map(_exists, column))
            if is_spread or ((is_empty or name in layout.without) and not wide):
                continue
            least = 0.5 * 10**-digits if name in self.small else 0.0
            texts = _column_texts(picked[name], partial(number, digits=digits), least, thousands=page)
            is_numeric = bool(types[name]) and str not in types[name]
            kind = "n" if is_numeric else _KINDS.get(name, "name")
            heading = printable(name if wide else layout.short.get(name, name))
            more, legend = _spread(name, picked, layout.interval, page=page)
            columns[name] = Column(name, of, heading, kind, tuple(texts), more, legend)
        keys = [columns.pop(name) for name in leading if name in columns]
        about = keys[0].name if keys and layout.keys else ""
        if layout.ranks:
            texts = [str(layout.ranks[row] or NO_VALUE) for row in chosen]
            keys.insert(0, Column("", "", "#" if page else "rank", "n", tuple(texts)))
        order = list(dict.fromkeys([*(name for name in layout.first if name in columns), *columns]))
        # Each followed by what belongs to it.
        rest = sorted(
            columns.values(),
            key=lambda each: (order.index(each.of if each.of in order else each.name), each.of != each.name),
        )
        if page:
            whole = rows is not None
            keys, rest = (_on_page(part, rest, whole=whole) for part in (keys, rest))
            rest = rest[: layout.most]
        caption = printable(self.caption)
        most = None if wide else layout.most
        return View(caption, tuple(keys), tuple(rest), most, about, len(chosen), len(self.rows))

    def _by_column(self, rows: Sequence[tuple[Value, ...]]) -> dict[str, list[Value]]:
        # Of a hundred thousand rows zip(*rows) takes half a second.
        return {name: [row[i] for row in rows] for i, name in enumerate(self.header)}


def _on_page(columns: Sequence[Column], rest: Sequence[Column], *, whole: bool) -> list[Column]:
    """Return columns with all `NAME.WHAT` of the rest below their values, which are cut unless `whole`."""
    below = [each for each in rest if each.name.startswith(f"{each.of}.")]
    drawn = []
    for column in columns:
        if column not in below:
            width, empty = (
                sys.maxsize if whole else _WIDE[column.kind],
                NO_VALUE if column.kind == "n" else "",
            )
            values = tuple(cut(text, width, middle=True) or empty for text in column.values)
            more = (*column.more, *(each.values for each in below if each.of == column.name))
            drawn.append(replace(column, values=values, more=more))
    return drawn


def _spread(
    name: str, values: Mapping[str, Sequence[Value]], interval: str, *, page: bool
) -> tuple[tuple[tuple[str, ...], ...], str]:
    """Return the texts behind each value of a column, "" where a number is missing, and what they are."""
    for parts, legend, forms in _SPREADS:
        if values.keys() >= {f"{name}.{part}" for part in parts}:
            rows = zip(*(values[f"{name}.{part}"] for part in parts), strict=True)
            texts = tuple(
                forms[page].format(*map(number, row)) if all(map(_is_number, row)) else "" for row in rows
            )
            return ((texts,), legend or f"[{interval}]") if any(texts) else ((), "")
    return (), ""


def _exists(value: Value) -> bool:
    return bool(value) if isinstance(value, str) else _is_number(value)


def _is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and math.isfinite(value)


def rounded(table: Table, digits: int) -> Table:
    """Round a table's floats, for files, people and JSON: further digits are not certain."""
    rows = (tuple(round(v, digits) + 0.0 if isinstance(v, float) else v for v in row) for row in table.rows)
    return replace(table, rows=tuple(rows), digits=digits)


def to_tsv(table: Table) -> str:
    """Return a header line and a line a row; tabs and line ends in a value become spaces.

    What could steer a terminal is escaped: see `trecexam.results.terminal.printable`.
    """
    form = f"{{:z.{table.digits}f}}".format
    columns = [
        _column_texts(values, form, 0.5 * 10**-table.digits if name in table.small else 0.0)
        for name, values in table._by_column(table.rows).items()
    ]
    lines = ["\t".join(map(printable, table.header)), *map("\t".join, zip(*columns, strict=True))]
    return "\n".join(lines) + "\n"


def to_json(value: Any) -> str:
    """Return indented JSON in which NaN and infinity are null, so that every parser takes it.

    Characters that steer a terminal are JSON escapes.
    """
    text = json.dumps(_clean(value), indent=1, ensure_ascii=False, allow_nan=False)
    return CONTROLS.sub(lambda match: json.dumps(match[0])[1:-1], text) + "\n"


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _column_texts(
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
