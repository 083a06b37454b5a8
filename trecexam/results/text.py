"""Words of tables and messages: numbers with nouns, lists of names; notes on how to read a result."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Self

from trecexam.errors import REJECTED

#: Number of notes displayed below a table.
MOST = 3
#: Ranks of notes, most important first: missing data and written files (always displayed); reasons for low or
#: incomparable values; notes without a rank; how values are computed.
LOST, CHANGES, PLAIN, METHOD = range(4)


def plural(count: int, noun: str) -> str:
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("y") else f"{count:,} {noun}s"


def number(value: float, digits: int = 3) -> str:
    """Return a float with three significant digits and at most `digits` decimals."""
    size = abs(value)
    return f"{value:z,.{min(digits, 3 if size <= 1 else 2 if size < 10 else 1 if size < 100 else 0)}f}"


def counted(names: Sequence[str], noun: str) -> str:
    """Return a single name, or the count and the first names of several."""
    if len(names) == 1:
        return f"{noun} {names[0]}" if noun == "query" else names[0]
    return f"{plural(len(names), noun)} ({shorten_list(names, 3, quote='')})"


def shorten_list(names: Collection[str], most: int = 5, quote: str = "'") -> str:
    """Return the first names and the number of further names."""
    listed = ", ".join(f"{quote}{name}{quote}" for name in islice(names, most))
    return listed if len(names) <= most else f"{listed} and {len(names) - most:,} more"


def heading_parts(name: str) -> list[str]:
    """Return the parts of a column's name between which a narrow heading may break."""
    return re.split(r"(?<=[:, ])|(?<=.)(?=[(@])", name)


class Note(str):
    """A note with a rank (LOST, CHANGES, PLAIN or METHOD), usable as a string."""

    rank: int

    def __new__(cls, text: str, rank: int = PLAIN) -> Self:
        note = super().__new__(cls, text)
        note.rank = rank
        return note


def rank_of(note: str) -> int:
    return note.rank if isinstance(note, Note) else PLAIN


def first_notes(notes: Sequence[str], where: str) -> list[str]:
    """Return the first notes by rank, and a line that `where`, such as "--json", has all notes."""
    lost = [note for note in notes if note.startswith(REJECTED) or rank_of(note) == LOST]
    rest = [note for note in sorted(notes, key=rank_of) if note not in lost]
    more = [f"{plural(len(rest) - MOST, 'more note')}: {where} has all"] if len(rest) > MOST else []
    return [*lost, *rest[:MOST], *more]
