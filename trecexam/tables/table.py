"""Tables as rows of values, and their three renderings: TSV for programs, aligned for people, JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trecexam.tables.frames import Framed, texts
from trecexam.tables.html import html_table
from trecexam.tables.terminal import columns, padded, printable, printable_json

Value = str | int | float | None


@dataclass(frozen=True)
class Table(Framed):
    """Column names and rows. A None or NaN is an empty field in TSV, null in JSON.

    `digits` are those of floats in TSV, after the point. In the columns `small` what these would show as 0
    and is not has an exponent.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    digits: int = 6
    small: tuple[str, ...] = ()

    def columns(self) -> dict[str, Any]:
        """The columns, None and NaN as they are; one of texts and numbers is of texts."""
        return {name: _typed(values) for name, values in by_column(self)}

    def _repr_html_(self) -> str:
        """What a notebook shows: the first rows, floats with four digits."""
        cells = [column_texts(values, 4, small=name in self.small) for name, values in by_column(self)]
        return html_table(self.header, list(zip(*cells, strict=True)))

    def records(self) -> list[dict[str, Value]]:
        """The rows as JSON-ready objects."""
        return [dict(zip(self.header, map(_finite, row), strict=True)) for row in self.rows]


def to_tsv(table: Table) -> str:
    """A header line and a line a row; tabs and line ends in a value become spaces.

    What could steer a terminal is escaped: see `trecexam.tables.terminal.printable`.
    """
    columns = [
        column_texts(values, table.digits, small=name in table.small) for name, values in by_column(table)
    ]
    lines = ["\t".join(map(printable, table.header)), *map("\t".join, zip(*columns, strict=True))]
    return "\n".join(lines) + "\n"


def to_aligned(table: Table) -> str:
    """Columns padded with spaces, numbers to the right; floats with four digits."""
    fields_of = [column_texts(values, 4, small=name in table.small) for name, values in by_column(table)]
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
    return ((name, [row[place] for row in table.rows]) for place, name in enumerate(table.header))


def column_texts(values: Sequence[Value], digits: int, *, small: bool = False) -> list[str]:
    """The texts of a column. Of millions of values most are floats, or names that come again and again."""
    names: dict[str, str] = {}
    # z: a rounding below 0 is no "-0.000000".
    number = f"{{:z.{digits}f}}".format
    least = 0.5 * 10**-digits if small else 0.0
    texts = []
    for value in values:
        if isinstance(value, float):
            if not math.isfinite(value):
                texts.append("")
            else:
                texts.append(f"{value:.1e}" if value and abs(value) < least else number(value))
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
