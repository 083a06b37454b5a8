"""Words of tables and messages: numbers with their nouns, long lists of names."""

from __future__ import annotations

from collections.abc import Sequence


def plural(count: int, noun: str) -> str:
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("y") else f"{count:,} {noun}s"


#: Names that a line spells out before it says how many more there are.
SPELT = 3


def counted(names: Sequence[str], noun: str) -> str:
    """A name; or how many there are, and the first of them."""
    if len(names) == 1:
        return f"{noun} {names[0]}" if noun == "query" else names[0]
    spelt = ", ".join(names[:SPELT])
    more = f" and {len(names) - SPELT:,} more" if len(names) > SPELT else ""
    return f"{plural(len(names), noun)} ({spelt}{more})"


def shorten_list(names: Sequence[str], most: int = 5, quote: str = "'") -> str:
    """The first of these names, and how many more there are."""
    shown = ", ".join(f"{quote}{name}{quote}" for name in names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown
