"""Tables as rows of values, with TSV and JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from converters.errors import CONTROLS
from trecexam.results.frames import Framed, texts
from trecexam.results.printers import as_html, as_text
from trecexam.results.terminal import printable
from trecexam.results.text import shorten_list
from trecexam.results.view import Layout, Rows, Value, by_column, column_texts

__all__ = ["Layout", "Table", "Value", "only_named", "rounded", "to_json", "to_tsv"]


def only_named(name: str, columns: Iterable[str]) -> str | None:
    """Return the column `GRADER:NAME` with this name behind the grader's; None unless there is one."""
    matches = [column for column in columns if column.endswith(f":{name}")]
    return matches[0] if len(matches) == 1 else None


@dataclass(frozen=True, repr=False)
class Table(Rows, Framed):
    """Column names and rows. A None or NaN is an empty field in TSV, null in JSON."""

    def __repr__(self) -> str:
        return as_text([self])

    def _repr_html_(self) -> str:
        return as_html([self])

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
        for key, rows in groupby(self.rows, lambda row: tuple(row[i] for i in key_indices)):
            cells = tuple(tuple(row[i] for i in rest) for row in rows)
            yield key, replace(self, header=header, rows=cells)

    def columns(self) -> dict[str, Any]:
        """Return the columns, None and NaN as they are; a column of texts and numbers is of texts."""
        import pyarrow as pa

        columns = {}
        for name, values in by_column(self):
            try:
                columns[name] = pa.array(values)
            except pa.ArrowException:
                columns[name] = texts([None if value is None else str(value) for value in values])
        return columns

    def records(self) -> list[dict[str, Value]]:
        """Return the rows as JSON-ready objects."""
        rows: list[dict[str, Value]] = _clean(list(self))
        return rows


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
        column_texts(values, form, 0.5 * 10**-table.digits if name in table.small else 0.0)
        for name, values in by_column(table)
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
