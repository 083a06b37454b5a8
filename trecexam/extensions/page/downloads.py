"""Tables as files: a page's address with `format=csv` or `format=json` returns the whole table."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from trecexam.extensions.page.listing import Address, ListedRows, listed
from trecexam.tables.table import Table

#: What a table can be had as, with its media type.
FORMATS = {"csv": "text/csv; charset=utf-8", "json": "application/json"}


def as_file(address: Address, rows: ListedRows[Any], name: str) -> Response | None:
    """All rows of a table as the requested file; None if no file is requested.

    CSV is as RFC 4180 has it; a value that is missing is empty there, and null in JSON, a list of objects.
    What begins with `=` stays unchanged: ids are to be what they are.

    Args:
        name: of the file, without its ending.
    """
    file_format = address.get("format", *FORMATS)
    if not file_format or not rows.columns:
        return None
    values = [[_plain(column(row)) for column in rows.columns.values()] for row in rows.every]
    if file_format == "json":
        records = [dict(zip(rows.columns, row, strict=True)) for row in values]
        text = json.dumps(records, ensure_ascii=False, indent=1) + "\n"
    else:
        table = io.StringIO()
        csv.writer(table).writerows([list(rows.columns), *values])
        text = table.getvalue()
    return Response(
        text.encode(errors="replace"),
        media_type=FORMATS[file_format],
        headers={"content-disposition": f'attachment; filename="{name}.{file_format}"'},
    )


def table_file(address: Address, tables: Mapping[str, Table]) -> Response | None:
    """The requested table of a page as a file; None if no file is requested."""
    name = address.get("table", *tables)
    if not name:
        return None
    header, rows = tables[name].header, tables[name].rows
    columns = {column: (lambda row, index=index: row[index]) for index, column in enumerate(header)}
    return as_file(address, listed(rows, address, columns=columns), name)


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
