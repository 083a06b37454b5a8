"""Columns of a table with a header line, such as the output of `judge-next`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from converters.errors import ConversionError
from converters.lines import decode, iter_lines
from trecexam.errors import TrecexamError


def read_columns(path: Path, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Read these columns of each line of a TSV file, in order.

    Raises:
        TrecexamError: with the line: it cannot be read, or has no such columns.
    """
    rows: list[tuple[str, ...]] = []
    header: list[str] = []
    try:
        for number, raw in iter_lines(path):
            values = decode(path, number, raw).split("\t")
            if not header:
                if not set(columns) <= set(values):
                    raise ConversionError(
                        path, number, f"the header line lacks {' or '.join(columns)}, separated by tabs"
                    )
                header = values
                continue
            if len(values) != len(header):
                raise ConversionError(
                    path, number, f"{len(values)} columns, and the header has {len(header)}"
                )
            row = dict(zip(header, values, strict=True))
            rows.append(tuple(row[name] for name in columns))
    except ConversionError as error:
        raise TrecexamError(error.reason, path=path, line=error.line) from None
    return rows
