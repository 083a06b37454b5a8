"""How a table shows the text of a passage or item."""

from __future__ import annotations

#: Characters of a text that a table shows.
_SHOWN = 60


def beginning(text: str) -> str:
    """The beginning of a text on one line; a control character could take over the terminal."""
    line = " ".join(text[: 4 * _SHOWN].split())
    line = line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
