"""Words of tables and messages: numbers with their nouns, long lists of names."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import islice


def plural(count: int, noun: str) -> str:
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("y") else f"{count:,} {noun}s"


def number(value: float, digits: int = 3) -> str:
    """Return a float with three significant digits and at most `digits` decimals."""
    size = abs(value)
    return f"{value:z,.{min(digits, 3 if size <= 1 else 2 if size < 10 else 1 if size < 100 else 0)}f}"


#: Maximum number of names in a line.
SPELT = 3


def counted(names: Sequence[str], noun: str) -> str:
    """Return a single name, or the count and the first names of several."""
    if len(names) == 1:
        return f"{noun} {names[0]}" if noun == "query" else names[0]
    return f"{plural(len(names), noun)} ({shorten_list(names, SPELT, quote='')})"


def shorten_list(names: Collection[str], most: int = 5, quote: str = "'", *, dots: bool = False) -> str:
    """Return the first names and the number of further names; with `dots` only an ellipsis."""
    listed = ", ".join(f"{quote}{name}{quote}" for name in islice(names, most))
    if len(names) <= most:
        return listed
    return f"{listed}, ..." if dots else f"{listed} and {len(names) - most:,} more"


def heading_parts(name: str) -> list[str]:
    """Return the parts of a column's name between which a narrow heading may break."""
    return re.split(r"(?<=[:, ])|(?<=.)(?=[(@])", name)


def sentence(reason: str) -> str:
    """Return a reason as a sentence."""
    return reason[:1].upper() + reason[1:].rstrip(".") + "."
