"""Filters, order and paging of long tables, from an address. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from trecexam.extensions.page.urls import Value, with_query

if TYPE_CHECKING:
    from starlette.requests import Request

T = TypeVar("T")

#: Rows of a page, where the address does not say, and where it may say.
SIZE, SIZES = 50, (25, 50, 100, 250)


class Address:
    """The path and query string of a page."""

    def __init__(self, path: str, params: Mapping[str, str]) -> None:
        self.path = path
        self.given = dict(params)

    @classmethod
    def of(cls, request: Request) -> Address:
        """Return the address of a request."""
        raw = request.scope.get("raw_path") or request.url.path.encode()
        return cls(raw.decode("latin-1").split("?")[0], dict(request.query_params))

    def get(self, name: str, *allowed: str) -> str:
        """Return the value of a field; "" if missing or not among `allowed`."""
        value = self.given.get(name, "")
        return value if not allowed or value in allowed else ""

    def number(self, name: str) -> int | None:
        """Return the value of a field as a whole number; None if it is not one."""
        value = self.given.get(name, "")
        # Beyond 4,300 digits Python makes no number of them.
        return int(value) if value.isascii() and value.lstrip("-").isdigit() and len(value) < 10 else None

    def but(self, **changes: Value) -> str:
        """Return the address with changed fields; goes to the first page unless `page` is changed."""
        page = {} if "page" in changes else {"page": None}
        return with_query(self.path, {**self.given, **page, **changes})

    def __str__(self) -> str:
        return with_query(self.path, self.given)


@dataclass(frozen=True)
class ListedRows(Generic[T]):
    """A page of a table.

    Attributes:
        rows: those of this page; `first` is the place of the first of them among all `total`, from 1.
        page, pages: from 1; there is always one.
        sort: the column that orders it; `down`: highest first.
    """

    rows: Sequence[T]
    total: int
    first: int
    page: int
    pages: int
    size: int
    sort: str = ""
    down: bool = False


def listed(rows: Sequence[T], address: Address, sort: str = "", *, down: bool = False) -> ListedRows[T]:
    """Return the requested page of these rows, or the nearest existing one."""
    requested_size = address.number("size")
    size = requested_size if requested_size in SIZES else SIZE
    pages = max(1, math.ceil(len(rows) / size))
    page = min(max(1, address.number("page") or 1), pages)
    start = (page - 1) * size
    return ListedRows(rows[start : start + size], len(rows), start + 1, page, pages, size, sort, down)


def in_order(
    rows: Iterable[T], address: Address, keys: Mapping[str, Callable[[T], Any]], default: str
) -> ListedRows[T]:
    """Return the requested page of these rows, sorted by `sort=COLUMN` or `sort=-COLUMN` of the address.

    Args:
        keys: column -> what it is ordered by; rows without a value (None, NaN) come last either way.
        default: as `sort`.
    """
    sort = address.get("sort") or default
    sort = sort if sort.removeprefix("-") in keys else default
    column, down = sort.removeprefix("-"), sort.startswith("-")
    key = keys[column]
    rows_with_value: list[T] = []
    unknown: list[T] = []
    for row in rows:
        value = key(row)
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        (unknown if missing else rows_with_value).append(row)
    ordered = [*sorted(rows_with_value, key=key, reverse=down), *unknown]
    return listed(ordered, address, column, down=down)
