"""Text for a terminal: control characters are escaped, and lines keep to a width.

Passages, answers and ids come from others. A control character in them could recolour, retitle or
overwrite what a reader sees, and a bidirectional override could show it in another order.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from converters.errors import escaped


def printable(text: str) -> str:
    """Return one line: white space becomes one blank, characters that steer a terminal become escapes."""
    return escaped(" ".join(text.split()))


def columns(text: str) -> int:
    """Return how many columns of a terminal a printable text takes."""
    # This import takes 0.02 s.
    from wcwidth import width

    return width(text)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return a text padded with blanks to a width; `right` puts the blanks first."""
    blanks = " " * (width - columns(text))
    return blanks + text if right else text + blanks


def wrapped(text: str, width: int) -> list[str]:
    """Return lines of at most so many columns, broken at blanks where possible; [] for an empty text."""
    from wcwidth import wrap

    return wrap(text, width, break_on_hyphens=False)


def cut(text: str, width: int, *, middle: bool = False) -> str:
    """Return one printable line of limited width, with an ellipsis where text was cut.

    Args:
        middle: cut in the middle, since names often differ only at their end.
    """
    from wcwidth import clip

    # Combining marks take no column.
    line, most, at_end = printable(text), 4 * width, (width - 1) // 3 if middle else 0
    if len(line) <= most and columns(line) <= width:
        return line
    end = clip(line[-most:], columns(line[-most:]) - at_end, columns(line[-most:]))
    return f"{clip(line[:most], 0, max(0, width - 1 - at_end)).rstrip()}…{end}"


def cut_apart(texts: Sequence[str], width: int) -> list[str]:
    """Return each text as one printable line of limited width; distinct texts stay distinct.

    Texts are cut in the middle; a number at the end tells a later equal one apart.

    Args:
        width: at least 8.
    """
    from wcwidth import clip

    shown: dict[str, str] = {}
    used, numbers = set(), itertools.count(2)
    for text in dict.fromkeys(map(printable, texts)):
        shown[text] = cut(text, width, middle=True)
        while shown[text] in used:
            mark = f"…#{next(numbers)}"
            shown[text] = clip(text[: 4 * width], 0, max(0, width - len(mark))) + mark
        used.add(shown[text])
    return [shown[printable(text)] for text in texts]
