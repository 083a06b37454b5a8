"""Changes one member of a JSON text and leaves all its other bytes as they are: blanks, key order, escapes.

Reading the text and writing it again would lose all of these, and numbers beyond 64 bits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_BLANKS = re.compile(r"[ \t\n\r]*")
# Numbers are only skipped; Python would refuse to make one of more than 4,300 digits.
_SKIP = json.JSONDecoder(parse_int=str, parse_float=str)


class Member(NamedTuple):
    """A member of an object: its key, and where in the text its value begins and ends."""

    key: str
    start: int
    end: int


def members(text: str, start: int = 0) -> list[Member]:
    """The members of the object that begins at `start` (blanks before it are skipped), in order.

    Raises:
        ValueError: there is no object, or it is nested too deeply.
    """
    return list(_members(text, _after(text, start, "{")))


def elements(text: str, start: int) -> list[int]:
    """Where the values of the list that begins at `start` begin.

    Raises:
        ValueError: there is no list, or it is nested too deeply.
    """
    place = _blank(text, _after(text, start, "["))
    starts: list[int] = []
    while text[place] != "]":
        starts.append(place)
        place = _blank(text, _value(text, place)[1])
        if text[place] == ",":
            place = _blank(text, place + 1)
    return starts


def member(text: str, start: int, key: str) -> Member | None:
    """The member of that key, as a reader takes it: the last one, where there are several."""
    return next((entry for entry in reversed(members(text, start)) if entry.key == key), None)


def with_member(text: str, start: int, key: str, value: Any) -> str:
    """The text with another value of one key of the object at `start`; a new key becomes the last one."""
    here = members(text, start)
    written = dumped(text, value)
    for entry in reversed(here):
        if entry.key == key:
            return text[: entry.start] + written + text[entry.end :]
    added = dumped(text, key) + _colon(text) + written
    if not here:
        place = _after(text, start, "{")
        return text[:place] + added + text[place:]
    return text[: here[-1].end] + _comma(text) + added + text[here[-1].end :]


def with_element(text: str, start: int, value: Any) -> str:
    """The text with one more value at the end of the list at `start`."""
    places = elements(text, start)
    if not places:
        place = _after(text, start, "[")
        return text[:place] + dumped(text, value) + text[place:]
    end = _value(text, places[-1])[1]
    return text[:end] + _comma(text) + dumped(text, value) + text[end:]


def dumped(like: str, value: Any) -> str:
    """A value as JSON, with blanks and escapes as in the text `like`."""
    return json.dumps(value, ensure_ascii="\\u" in like, separators=(_comma(like), _colon(like)))


def _colon(text: str) -> str:
    """What stands between a key and its value in the text's first object."""
    first = next(_members(text, _after(text, 0, "{")), None)
    return ": " if first is None or text[first.start - 1] in " \t" else ":"


def _comma(text: str) -> str:
    return ", " if _colon(text) == ": " else ","


def _members(text: str, place: int) -> Iterator[Member]:
    place = _blank(text, place)
    while text[place] != "}":
        key, place = _value(text, place)
        start = _blank(text, _after(text, place, ":"))
        end = _value(text, start)[1]
        yield Member(key, start, end)
        place = _blank(text, end)
        if text[place] == ",":
            place = _blank(text, place + 1)


def _value(text: str, place: int) -> tuple[Any, int]:
    try:
        return _SKIP.raw_decode(text, place)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _blank(text: str, place: int) -> int:
    blanks = _BLANKS.match(text, place)
    assert blanks is not None
    return blanks.end()


def _after(text: str, place: int, sign: str) -> int:
    place = _blank(text, place)
    if text[place : place + 1] != sign:
        raise ValueError(f"no {sign} at column {place + 1}")
    return place + 1
