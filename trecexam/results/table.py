"""Tables as rows of values: TSV and JSON for programs, text columns for display."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, TypeGuard

from converters.errors import CONTROLS
from trecexam.results.frames import Framed, texts
from trecexam.results.html import MOST_ROWS as MOST_ON_PAGE
from trecexam.results.html import as_html
from trecexam.results.terminal import cut, printable
from trecexam.results.text import number, shorten_list
from trecexam.results.view import MOST_ROWS, NO_VALUE, Column, View, as_text

Value = str | int | float | None

#: Columns `NAME.WHAT` displayed beside values of the column NAME, with their format.
_SPREADS = ((("stderr",), "± standard error", "±{}"), (("low", "high"), "[95% interval]", "[{}, {}]"))
_BESIDE = ("stderr", "low", "high")
#: Maximum letters in a cell of a page, by kind of column.
_WIDE = {"text": 160, "code": 80, "name": 40, "n": 160}
#: Kinds of columns by name; other columns hold names.
_KINDS = {
    **dict.fromkeys(("query and passage", "reason", "text", "why", "note", "file"), "text"),
    **dict.fromkeys(("item_id", "sha256"), "code"),
}


@dataclass(frozen=True)
class Layout:
    """Layout of a displayed table. Names of columns that the table lacks are ignored.

    `NAME.stderr`, or `NAME.low` and `NAME.high`, are the standard error or the interval of the column `NAME`,
    displayed behind its values.

    Attributes:
        keys: the columns at the start of each line; () for the leading text columns.
        first: the columns that follow the keys.
        without: columns hidden except with --wide.
        ranks: rank of each row from 1, before the keys; () for none.
        short: column -> a shorter heading; with --wide the column's own name.
    """

    keys: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    ranks: tuple[int | None, ...] = ()
    short: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class Table(Framed):
    """Column names and rows. A None or NaN is an empty field in TSV, null in JSON.

    Attributes:
        digits: decimals of floats in TSV; displayed values have three significant digits, see `number`.
        small: columns whose tiny values have an exponent instead of a displayed 0.
        layout: layout of the displayed table.
        caption: a line above the table.
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
        return as_html([self.view(MOST_ON_PAGE, page=True)])

    def __iter__(self) -> Iterator[dict[str, Value]]:
        return (dict(zip(self.header, row, strict=True)) for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __bool__(self) -> bool:
        # True even for a table without rows.
        return True

    def __contains__(self, name: object) -> bool:
        """Return True if `table[name]` is a column or a row."""
        return name in self.header or any(row and row[0] == name for row in self.rows)

    def __getitem__(self, name: str) -> Any:
        """Return a column by name, as a list; or the row with this value in the first column, as a dict.

        If several rows have the value, return a table of these rows.

        Raises:
            KeyError: neither a column nor a row; the message names the columns.
        """
        if name in self.header:
            column_index = self.header.index(name)
            return [row[column_index] for row in self.rows]
        rows = tuple(row for row in self.rows if row and row[0] == name)
        if not rows:
            names = [each for each in self.header if not each.endswith((".stderr", ".low", ".high"))]
            raise KeyError(
                f"{name!r} is neither a column nor a {self.header[0]} of a row; columns: "
                f"{shorten_list(names, quote='')}"
            )
        return dict(zip(self.header, rows[0], strict=True)) if len(rows) == 1 else replace(self, rows=rows)

    def grouped(self, *names: str) -> Iterator[tuple[tuple[Value, ...], Table]]:
        """Yield each group's values of these columns, and a table of its rows without these columns.

        Rows of one group are next to each other.
        """
        key_indices = [self.header.index(name) for name in names]
        rest = [i for i in range(len(self.header)) if i not in key_indices]
        header = tuple(self.header[i] for i in rest)
        for key, rows in itertools.groupby(self.rows, lambda row: tuple(row[i] for i in key_indices)):
            cells = tuple(tuple(row[i] for i in rest) for row in rows)
            yield key, replace(self, header=header, rows=cells)

    def columns(self) -> dict[str, Any]:
        """Return the columns with None and NaN unchanged; a mixed column becomes text."""
        import pyarrow as pa

        columns = {}
        for i, name in enumerate(self.header):
            values = [row[i] for row in self.rows]
            try:
                columns[name] = pa.array(values)
            except pa.ArrowException:
                columns[name] = texts([None if value is None else str(value) for value in values])
        return columns

    def view(
        self,
        most: int | None = None,
        *,
        wide: bool = False,
        page: bool = False,
        rows: Sequence[int] | None = None,
    ) -> View:
        """Return the view of a table to display, with columns in the order of the layout.

        Columns without any value are left out, except the first.

        Args:
            most: maximum number of rows; None for all.
            wide: include all columns, each under its own name.
            page: format for HTML: long texts cut, and all `NAME.WHAT` below the values of NAME.
            rows: indices of rows to show, in this order, with whole texts.
        """
        layout, digits, n_rows = self.layout, min(self.digits, 3), len(self.rows[:most])
        chosen = range(n_rows) if rows is None else rows
        all_values = {name: [row[i] for row in self.rows[:most]] for i, name in enumerate(self.header)}
        # NaN, which is no value, differs from itself.
        types = {
            name: {type(value) for value in column if value not in ("", None) and value == value}
            for name, column in all_values.items()
        }
        keys = layout.keys or tuple(itertools.takewhile(lambda name: types[name] == {str}, all_values))
        # The first column stays even without a value: a row without columns would be no row.
        stays = {*keys, *self.header[:1]}
        empty = {name for name in types if not types[name] and n_rows}
        values = {name: [column[row] for row in chosen] for name, column in all_values.items()}
        shown: dict[str, Column] = {}
        for name, column in values.items():
            owner = next((other for other in values if name.startswith((f"{other}.", f"{other} "))), name)
            is_beside = owner != name and name.removeprefix(f"{owner}.") in _BESIDE
            if name not in stays and (is_beside or (name in empty and not wide)):
                continue
            if name in layout.without and not wide:
                continue
            kind = _KINDS.get(name, "name") if str in types[name] or not types[name] else "n"
            least = 0.5 * 10**-digits if name in self.small else 0.0
            texts = _column_texts(column, partial(number, digits=digits), least, thousands=True)
            if page and rows is None and name == owner:
                texts = [cut(text, _WIDE[kind], middle=True) for text in texts]
            if kind == "n" and page:
                texts = [text or NO_VALUE for text in texts]
            heading = printable(name if wide else layout.short.get(name, name))
            spread, legend = _spread(name, values)
            shown[name] = Column(name, owner, heading, kind, tuple(texts), spread, legend)
        for part in [each for each in shown.values() if page and each.name.startswith(f"{each.owner}.")]:
            if part.owner in shown:
                above = shown[part.owner]
                shown[part.owner] = replace(above, more=(*above.more, shown.pop(part.name).values))
        first = [shown.pop(name) for name in keys if name in shown]
        if layout.ranks:
            ranks = tuple(str(layout.ranks[row] or NO_VALUE) for row in chosen)
            first.insert(0, Column("", "", "#" if page else "rank", "n", ranks))
        # Each column is followed by the columns that belong to it.
        order = [*layout.first, *self.header]
        rest = sorted(shown.values(), key=lambda each: (order.index(each.owner), each.owner != each.name))
        return View(printable(self.caption), tuple(first), tuple(rest), len(chosen), len(self.rows))


def _spread(name: str, values: Mapping[str, Sequence[Value]]) -> tuple[tuple[tuple[str, ...], ...], str]:
    """Return the texts beside each value of a column ("" if missing), and their description."""
    for parts, legend, form in _SPREADS:
        if values.keys() >= {f"{name}.{part}" for part in parts}:
            rows = zip(*(values[f"{name}.{part}"] for part in parts), strict=True)
            texts = tuple(form.format(*map(number, row)) if all(map(_is_number, row)) else "" for row in rows)
            return ((texts,), legend) if any(texts) else ((), "")
    return (), ""


def _is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and math.isfinite(value)


def to_tsv(table: Table) -> str:
    """Return a header line and a line per row; tabs and line ends in values become spaces.

    Terminal control characters are escaped, see `trecexam.results.terminal.printable`.
    """
    form = f"{{:z.{table.digits}f}}".format
    columns = [
        _column_texts(
            [row[i] for row in table.rows], form, 0.5 * 10**-table.digits if name in table.small else 0.0
        )
        for i, name in enumerate(table.header)
    ]
    lines = ["\t".join(map(printable, table.header)), *map("\t".join, zip(*columns, strict=True))]
    return "\n".join(lines) + "\n"


def to_json(value: Any) -> str:
    """Return indented JSON with null for NaN and infinity, so that every parser accepts it.

    Characters that steer a terminal are JSON escapes.
    """
    text = json.dumps(_clean(value), indent=1, ensure_ascii=False, allow_nan=False)
    return CONTROLS.sub(lambda match: json.dumps(match[0])[1:-1], text) + "\n"


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_clean, value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _column_texts(
    values: Sequence[Value], form: Callable[[float], str], least: float, *, thousands: bool = False
) -> list[str]:
    """Return the texts of a column; fast for millions of floats or repeated names.

    Args:
        form: formats a float; never gives "-0.000000".
        least: smaller values, except 0, have an exponent.
        thousands: write whole numbers with commas.
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
