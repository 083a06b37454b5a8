"""Displayed columns of a table, for the printers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from trecexam.results.terminal import columns as columns_of
from trecexam.results.text import heading_parts

#: Minimum width of a text after cutting.
_LEAST = 4


@dataclass(frozen=True)
class Column:
    """A displayed column: its heading, and its values as texts.

    Attributes:
        name: name in the table; "" for ranks.
        of: the column that this column belongs to, as `NAME what` to NAME; else its own name.
        kind: "n" for numbers, else "text", "code" or "name".
        more: text beside each value, the standard error or the interval; "" if missing. On a page these and
            all other `NAME.WHAT` are below the value.
        legend: description of the standard error or interval.
    """

    name: str
    of: str
    heading: str
    kind: str
    values: tuple[str, ...]
    more: tuple[tuple[str, ...], ...] = ()
    legend: str = ""

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Values, each with its standard error or interval in the same line."""
        parts = (self.values, *self.more)
        widths = [max(map(len, texts), default=0) for texts in parts]
        if len(parts) == 1:
            return self.values
        rows = zip(*parts, strict=True)
        return tuple(" ".join(map(str.rjust, row, widths)) for row in rows)

    @cached_property
    def widest(self) -> int:
        """Width of the longest text, in terminal columns."""
        return max(map(columns_of, self.texts), default=0)

    def width(self, text: int, heading: int) -> int:
        """Return the width after cutting texts and breaking the heading at the given widths.

        Numbers are never cut; a heading breaks between its parts only.
        """
        widest = self.widest if self.kind == "n" else min(self.widest, max(text, _LEAST))
        parts = map(columns_of, heading_parts(self.heading))
        return max(widest, min(columns_of(self.heading), heading), *parts)


class View(NamedTuple):
    """Displayed columns and rows of a table.

    Attributes:
        keys: the columns at the start of each line.
        rest: the other columns.
        most: maximum number of other columns, see `Layout`.
        name: the column that names a row's subject; "" if none does.
        n_rows: number of rows in this view, of `total` in the table.
    """

    caption: str
    keys: tuple[Column, ...]
    rest: tuple[Column, ...]
    most: int | None
    name: str
    n_rows: int
    total: int

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the view: keys, then the rest."""
        return (*self.keys, *self.rest)

    @property
    def legend(self) -> list[str]:
        """Descriptions of the standard errors and intervals behind values."""
        return list(dict.fromkeys(column.legend for column in self.columns if column.legend))
