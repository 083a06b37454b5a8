"""Text that is fit for a terminal: nothing in it can steer the terminal, and it keeps to a width.

Passages, answers and ids come from others. A control character in them could recolour, retitle or
overwrite what a reader sees, and a bidirectional override could show it in another order.
"""

from __future__ import annotations

import json
import unicodedata

#: East Asian widths that take two columns.
_WIDE = frozenset("WF")
#: Marks and joiners: drawn over what is before them.
_NO_WIDTH = frozenset(("Mn", "Me", "Cf"))


def printable(text: str) -> str:
    """One line: white space becomes one blank, and what could steer a terminal its Python escape."""
    # Here, as all formats come with it, which no --help needs.
    from converters.controls import escaped

    return escaped(" ".join(text.split()))


def printable_json(text: str) -> str:
    """JSON with the same characters written as JSON escapes; a parser reads the same values."""
    from converters.controls import CONTROLS

    return CONTROLS.sub(lambda match: json.dumps(match[0])[1:-1], text)


def columns(text: str) -> int:
    """How many columns of a terminal a printable text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def padded(text: str, width: int, *, right: bool = False) -> str:
    """The text with blanks up to a width; `right` puts them before it."""
    blanks = " " * (width - columns(text))
    return blanks + text if right else text + blanks


def wrapped(text: str, width: int, most: int | None = None) -> list[str]:
    """Lines of at most so many columns, broken at blanks where possible; [] for an empty text.

    Args:
        most: no more lines than this; an ellipsis ends the last where something was cut.
    """
    lines: list[str] = []
    for word in text.split():
        if most is not None and len(lines) > most:
            break
        if lines and columns(lines[-1]) + 1 + columns(word) <= width:
            lines[-1] += " " + word
            continue
        while columns(word) > width:
            head = _head(word, width)
            lines.append(head)
            word = word[len(head) :]
        if word:
            lines.append(word)
    if most is None or len(lines) <= most:
        return lines
    return [*lines[: most - 1], _head(lines[most - 1], width - 1).rstrip() + "…"]


def cut(text: str, width: int, *, middle: bool = False) -> str:
    """One printable line of at most so many columns; an ellipsis stands for what is left out.

    Args:
        middle: keep the end too, as names often differ there alone.
    """
    line = printable(text)
    # One column may hold any number of marks, which take none.
    most = 4 * width
    if len(line) <= most and columns(line) <= width:
        return line
    tail = (width - 1) // 3 if middle else 0
    end = _head(line[: -most - 1 : -1], tail)[::-1] if tail else ""
    return _head(line[:most], width - 1 - columns(end)).rstrip() + "…" + end


def _head(text: str, width: int) -> str:
    """The longest start of a text that fits; never none of it."""
    used = 0
    for place, character in enumerate(text):
        used += _columns(character)
        if used > width and place:
            return text[:place]
    return text


def _columns(character: str) -> int:
    if unicodedata.category(character) in _NO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1
