"""Reads columns from a data frame of any library, or from records."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

from trecexam.errors import TrecexamError
from trecexam.results.text import shorten_list

#: A field -> the names that it may have, the first of them ours; PyTerrier's and ir_datasets' are among them.
Fields = Mapping[str, Sequence[str]]
QUERY_ID = ("query_id", "qid")
DOC_ID = ("doc_id", "docno", "docid")


def is_path(data: Any) -> bool:
    """Return True for a path, False for content."""
    return isinstance(data, str | os.PathLike)


def columns_of(
    data: Any, fields: Fields, what: str, optional: Collection[str] = ()
) -> dict[str, Sequence[Any]]:
    """Return the values of each field, row by row.

    Args:
        data: a data frame (whatever has the Arrow PyCapsule interface: pandas, polars, pyarrow, narwhals,
            duckdb ...), or an iterable of dicts, or of records with the fields as attributes.
        what: its name in messages.
        optional: fields that may be missing from all rows.

    Raises:
        TrecexamError: it is neither; a field is missing, or there are no rows.
    """
    table = _table(data, what)
    rows = rows_of(data, what) if table is None else []
    names = dict.fromkeys(name for row in rows for name in row) if table is None else table.column_names
    if not (rows or table):
        raise TrecexamError(f"{what}: no rows")
    columns: dict[str, Sequence[Any]] = {}
    for field, column_names in fields.items():
        name = next((name for name in column_names if name in names), None)
        if name is not None:
            columns[field] = [row.get(name) for row in rows] if table is None else table[name].to_pylist()
        elif field not in optional:
            named = " or ".join(map(repr, column_names))
            raise TrecexamError(f"{what}: no column {named} among {shorten_list(list(names)) or 'none'}")
    return columns


def rows_of(data: Any, what: str) -> list[dict[str, Any]]:
    """Return the rows as dicts, without missing values; accepts the same as `columns_of`.

    Raises:
        TrecexamError: it is neither.
    """
    table = _table(data, what)
    if table is not None:
        rows = table.to_pylist()
        return [{name: value for name, value in row.items() if value is not None} for row in rows]
    if isinstance(data, Mapping) or not isinstance(data, Iterable):
        more = "; collect() it" if hasattr(data, "collect") else ""
        raise TrecexamError(
            f"{what}: give a file, a data frame or a list of records, not a {type(data).__name__}{more}"
        )
    rows = []
    for number, row in enumerate(data, 1):
        fields = row if isinstance(row, Mapping) else row._asdict() if hasattr(row, "_asdict") else None
        fields = getattr(row, "__dict__", None) if fields is None else fields
        if fields is None or not (fields or isinstance(row, Mapping)):
            raise TrecexamError(
                f"{what}: row {number} is neither a dict nor a record with names: {row!r:.60}"
            )
        rows.append(dict(fields))
    return rows


def ids(values: Iterable[Any], what: str) -> list[str]:
    """Return the values as ids; whole numbers become text.

    Raises:
        TrecexamError: one is neither, or is "".
    """
    texts = []
    for number, value in enumerate(values, 1):
        if not isinstance(value, bool) and isinstance(value, Integral):
            value = str(int(value))
        if not isinstance(value, str) or not value:
            raise TrecexamError(
                f"{what}: row {number} has no id but {value!r:.60}; read ids as text (in pandas, dtype=str)"
            )
        texts.append(value)
    return texts


def number_of(value: Any, what: str) -> float:
    """Return the value as a number, which may be infinite.

    Raises:
        TrecexamError: it is none.
    """
    # duckdb has decimals.
    if not isinstance(value, bool) and isinstance(value, Real | Decimal):
        with contextlib.suppress(OverflowError, ValueError):
            if not math.isnan(number := float(value)):
                return number
    raise TrecexamError(f"{what} is not a number: {value!r:.60}")


def whole_number(value: Any, what: str) -> int:
    """Return the value as a whole number; accepts 2.0, which pandas uses in columns with missing values.

    Raises:
        TrecexamError: it is none.
    """
    number = number_of(value, what)
    if not number.is_integer():
        raise TrecexamError(f"{what} is not a whole number: {value!r}")
    return int(number)


def _table(data: Any, what: str) -> Any:
    """Return a data frame as a pyarrow table; None for other data."""
    if not hasattr(data, "__arrow_c_stream__"):
        return None
    import pyarrow as pa

    try:
        return pa.table(data)
    except (pa.ArrowException, ValueError, TypeError) as error:
        # A column of texts and numbers, say.
        raise TrecexamError(f"{what}: the data frame cannot be read: {error}") from None
