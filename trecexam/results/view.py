"""Columns of a table as people read them, for the printers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from trecexam.results.terminal import columns as columns_of
from trecexam.results.text import heading_parts

#: The least width to which a text is cut in a line.
_LEAST = 4


@dataclass(frozen=True)
class Column:
    """A column as people read it: its heading, and its values as texts.

    Attributes:
        name: in the table; "" for ranks.
        of: the column that it belongs to, as `NAME what` to NAME; else its own name.
        kind: "n" for numbers, else "text", which is read, "code" or "name".
        more: texts beside each value, "" where there is none: the standard error or the interval. On a page
            they are below the value, and so are all other `NAME.WHAT`.
        legend: what the standard error or interval is.
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
        """The values with what stands behind them, both in line."""
        parts = (self.values, *self.more)
        widths = [max(map(len, texts), default=0) for texts in parts]
        if len(parts) == 1:
            return self.values
        rows = zip(*parts, strict=True)
        return tuple(" ".join(map(str.rjust, row, widths)) for row in rows)

    @cached_property
    def widest(self) -> int:
        """The columns of a terminal that the longest text takes."""
        return max(map(columns_of, self.texts), default=0)

    def width(self, text: int, heading: int) -> int:
        """Return the width with texts cut to one width and the heading broken at another.

        Numbers are never cut; a heading breaks between its parts only.
        """
        widest = self.widest if self.kind == "n" else min(self.widest, max(text, _LEAST))
        parts = map(columns_of, heading_parts(self.heading))
        return max(widest, min(columns_of(self.heading), heading), *parts)


class View(NamedTuple):
    """Columns and rows of a table that people are shown.

    Attributes:
        keys: the columns that each line begins with.
        rest: the other columns.
        most: no more of the other columns than this, see `Layout`.
        name: of the column that says what a row is about; "" where no column does.
        n_rows: how many rows there are here, of `total` in the table.
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
        """All columns."""
        return (*self.keys, *self.rest)

    @property
    def legend(self) -> list[str]:
        """What stands behind values."""
        return list(dict.fromkeys(column.legend for column in self.columns if column.legend))
