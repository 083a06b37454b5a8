"""Text for a terminal: control characters are escaped, and lines keep to a width.

Passages, answers and ids come from others. A control character in them could recolour, retitle or
overwrite what a reader sees, and a bidirectional override could show it in another order.
"""

from __future__ import annotations

import itertools
import textwrap
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from converters.errors import escaped


def printable(text: str) -> str:
    """Return one line: white space becomes one blank, characters that steer a terminal become escapes."""
    return escaped(" ".join(text.split()))


def columns(text: str) -> int:
    """Return how many columns of a terminal a printable text takes."""
    if text.isascii():
        return len(text)
    # This import takes 0.02 s, and most tables do not need it.
    from wcwidth import wcswidth

    return max(0, wcswidth(text))


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return a text padded with blanks to a width; `right` puts the blanks first."""
    blanks = " " * (width - columns(text))
    return blanks + text if right else text + blanks


def wrapped(text: str, width: int) -> list[str]:
    """Return lines of at most so many columns, broken at blanks where possible; [] for an empty text."""
    if text.isascii():
        return textwrap.wrap(text, width, break_on_hyphens=False)
    from wcwidth import wrap

    return wrap(text, width, break_on_hyphens=False)


def cut(text: str, width: int, *, middle: bool = False) -> str:
    """Return one printable line of limited width, with an ellipsis where text was cut.

    Args:
        middle: cut in the middle, since names often differ only at their end.
    """
    line = printable(text)
    # Combining marks take no column.
    most = 4 * width
    if len(line) <= most and columns(line) <= width:
        return line
    end = _head(line[-most:][::-1], (width - 1) // 3)[::-1] if middle else ""
    return _head(line[:most], width - 1 - columns(end)).rstrip() + "…" + end


def cut_apart(texts: Sequence[str], width: int) -> list[str]:
    """Return each text as one printable line of limited width; distinct texts stay distinct.

    Texts are cut in the middle; a number at the end tells equal results apart.

    Args:
        width: at least 8.
    """
    cut_texts = {text: cut(text, width, middle=True) for text in map(printable, texts)}
    alike = Counter(cut_texts.values())
    used, numbers = set(alike), itertools.count(1)
    for text, as_shown in cut_texts.items():
        while alike[as_shown] > 1 and cut_texts[text] in used:
            mark = f"…#{next(numbers)}"
            cut_texts[text] = _head(text[: 4 * width], max(0, width - len(mark))) + mark
        used.add(cut_texts[text])
    return [cut_texts[printable(text)] for text in texts]


def _head(text: str, width: int) -> str:
    """Return the longest start of a text that fits."""
    if text.isascii():
        return text[: max(0, width)]
    # A mark may widen the letter before it, so whole prefixes are measured.
    text = text[: 4 * max(width, 0)]
    return text[: bisect_right(range(1, len(text) + 1), width, key=lambda end: columns(text[:end]))]
