"""Text that is fit for a terminal: nothing in it can steer the terminal, and it keeps to a width.

Passages, answers and ids come from others. A control character in them could recolour, retitle or
overwrite what a reader sees, and a bidirectional override could show it in another order.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence

from converters.errors import CONTROLS, escaped


def printable(text: str) -> str:
    """One line: white space becomes one blank, and what could steer a terminal its Python escape."""
    return escaped(" ".join(text.split()))


def printable_json(text: str) -> str:
    """JSON with the same characters written as JSON escapes; a parser reads the same values."""
    return CONTROLS.sub(lambda match: json.dumps(match[0])[1:-1], text)


def columns(text: str) -> int:
    """How many columns of a terminal a printable text takes."""
    if text.isascii():
        return len(text)
    # Two hundredths of a second, which most tables do not need.
    from wcwidth import wcswidth

    return max(0, wcswidth(text))


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
            head = _head(word, width) or next(iter(_graphemes(word)))
            lines.append(head)
            word = word[len(head) :]
        if word:
            lines.append(word)
    if most is None or len(lines) <= most:
        return lines
    return [*lines[: most - 1], _head(lines[most - 1], width - 1).rstrip() + "…"]


def cut(text: str, width: int, *, middle: bool = False) -> str:
    """One printable line of at most so many columns; an ellipsis means what was left out.

    Args:
        middle: keep the end too, as names often differ there alone.
    """
    line = printable(text)
    # One column may hold any number of marks, which take none.
    most = 4 * width
    if len(line) <= most and columns(line) <= width:
        return line
    end = _tail(line[-most:], (width - 1) // 3) if middle else ""
    return _head(line[:most], width - 1 - columns(end)).rstrip() + "…" + end


def cut_apart(texts: Sequence[str], width: int) -> list[str]:
    """Each text in one printable line of at most so many columns; those that differ stay different.

    They are cut in their middle. Where that would make several alike, the part that they differ in is shown
    between two ellipses; where this has no room, a number ends each.

    Args:
        width: at least 8.
    """
    distinct = [*dict.fromkeys(map(printable, texts))]
    cut_texts = {text: cut(text, width, middle=True) for text in distinct}
    for alike in _alike(cut_texts):
        cut_texts.update(_around_difference(alike, width))
    used = set(cut_texts.values())
    numbers = itertools.count(1)
    for text in [text for alike in _alike(cut_texts) for text in alike]:
        while cut_texts[text] in used:
            mark = f"…#{next(numbers)}"
            cut_texts[text] = _head(text[: 4 * width], max(0, width - len(mark))) + mark
        used.add(cut_texts[text])
    return [cut_texts[printable(text)] for text in texts]


def _alike(cut_texts: dict[str, str]) -> list[list[str]]:
    """The texts that are shown as others are, those that are shown alike together."""
    groups = defaultdict(list)
    for text, as_shown in cut_texts.items():
        groups[as_shown].append(text)
    return [group for group in groups.values() if len(group) > 1]


def _around_difference(texts: Sequence[str], width: int) -> dict[str, str]:
    """Each text with the part that lies between the beginning and the end that all of them share."""
    same = _shared(texts)
    end = _shared([text[same:][::-1] for text in texts])
    # A digit says more with those beside it.
    differing = max(columns(text[same : len(text) - end]) for text in texts)
    around = max(0, min(3, (width - differing) // 4))
    same, end = max(0, same - around), max(0, end - around)
    parts = [text[same : len(text) - end] for text in texts]
    room = min(max(map(columns, parts)), width - 4)
    tail = _tail(texts[0][len(texts[0]) - end :], (width - 2 - room) // 3)
    head = _head(texts[0][:same], width - 2 - room - columns(tail))
    return {
        text: f"{head}…{cut(part, room) if part else ''}{'…' if part and end else ''}{tail}"
        for text, part in zip(texts, parts, strict=True)
    }


def _shared(texts: Sequence[str]) -> int:
    """How many first characters all texts have in common."""
    same = itertools.takewhile(lambda characters: len(set(characters)) == 1, zip(*texts, strict=False))
    return sum(1 for _ in same)


def _head(text: str, width: int) -> str:
    """The longest start of a text that fits."""
    return text[:width] if text.isascii() else _fitting(_graphemes(text), width)


def _tail(text: str, width: int) -> str:
    """The longest end of a text that fits."""
    if text.isascii():
        return text[len(text) - width :] if width < len(text) else text
    return _fitting(reversed([*_graphemes(text)]), width, reverse=True)


def _fitting(graphemes: Iterable[str], width: int, *, reverse: bool = False) -> str:
    fitting: list[str] = []
    for grapheme in graphemes:
        width -= columns(grapheme)
        if width < 0:
            break
        fitting.append(grapheme)
    return "".join(reversed(fitting) if reverse else fitting)


def _graphemes(text: str) -> Iterable[str]:
    """What a reader sees as one character each: with its marks, joined emoji together."""
    from wcwidth import iter_graphemes

    return iter_graphemes(text)
