"""A list of passages to judge, as `settle`, `learned-next` and `judge-next` write with -o."""

from __future__ import annotations

from pathlib import Path

from converters.errors import ConversionError
from converters.lines import decode, iter_lines
from trecexam.errors import TrecexamError

_COLUMNS = ("query_id", "doc_id")


def read_listed(path: Path) -> list[tuple[str, str]]:
    """(query_id, doc_id) of each line, in order, from a TSV file with at least these columns.

    Raises:
        TrecexamError: with the line: it cannot be read, or has no such columns.
    """
    rows: list[tuple[str, str]] = []
    header: list[str] = []
    try:
        for number, raw in iter_lines(path):
            values = decode(path, number, raw).split("\t")
            if not header:
                if not set(_COLUMNS) <= set(values):
                    raise ConversionError(
                        path, number, "the header line lacks query_id or doc_id, separated by tabs"
                    )
                header = values
                continue
            if len(values) != len(header):
                raise ConversionError(
                    path, number, f"{len(values)} columns, and the header has {len(header)}"
                )
            row = dict(zip(header, values, strict=True))
            rows.append((row["query_id"], row["doc_id"]))
    except ConversionError as error:
        raise TrecexamError(error.reason, path=path, line=error.line) from None
    return rows
