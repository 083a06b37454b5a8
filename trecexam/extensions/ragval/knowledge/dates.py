"""Dates as people and programs write them -> the span of time that they name.

Read are ISO 8601 with or without a time and a zone, `2023` and `2023-01`, RFC 2822, `January 5, 2023` and its
kin, seconds or milliseconds since 1970. A time without a zone is UTC. What may be one of two days
(`04/05/2023`), and what names no year, is not guessed.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

#: Characters that a date may have.
_LONGEST = 100
#: From here on a number is milliseconds: as seconds it would be in the year 5138.
_MILLISECONDS = 100_000_000_000
_YEARS = range(1000, 10_000)
_YEAR = re.compile(r"\d{4}")
_DAY = re.compile(r"(\d{4})(\d\d)(\d\d)")
_EPOCH = re.compile(r"-?\d{9,13}(\.\d+)?")
_YEAR_FIRST = re.compile(r"\d{4}(\D|\d{4}(?!\d))")
_WEEK = re.compile(r"\d{4}-?W\d\d(-?\d)?")
#: RFC 2822, section 4.3; "Z" and "UTC" beside.
_ZONES = {"UT": 0, "GMT": 0, "UTC": 0, "Z": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5} | {
    "MST": -7,
    "MDT": -6,
    "PST": -8,
    "PDT": -7,
}
#: Two days that share nothing: what both give a date says, and what differs it does not.
_ONE, _OTHER = datetime(2000, 1, 1), datetime(2004, 2, 2, 1, 1, 1)


class Span(NamedTuple):
    """From `start` on, and before `end`; both in UTC. Of a moment, both are the same."""

    start: datetime
    end: datetime


def span(value: Any) -> Span:
    """The time that a date names: of `2023-01` the month, of a date with a time the moment.

    Args:
        value: a text or a number, as JSON has them. Numbers of four digits are years.

    Raises:
        ValueError: it cannot be read, or may mean several days; the message says which.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("is neither text nor a number")
    try:
        return _number(value) if isinstance(value, int | float) else _text(value.strip())
    except OverflowError:
        raise ValueError("is out of range") from None


def _number(value: float) -> Span:
    if isinstance(value, int) and value in _YEARS:
        return _year(value)
    seconds = value / 1000 if abs(value) >= _MILLISECONDS else value
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OSError, ValueError):
        raise ValueError("is out of range") from None
    return Span(moment, moment)


def _text(text: str) -> Span:
    if not text:
        raise ValueError("is empty")
    if len(text) > _LONGEST:
        raise ValueError("cannot be read as a date")
    if _YEAR.fullmatch(text):
        return _year(int(text))
    if day := _DAY.fullmatch(text):
        year, month, number = map(int, day.groups())
        return _days(_day(year, month, number), 1)
    if _EPOCH.fullmatch(text):
        return _number(float(text))
    if _WEEK.fullmatch(text):
        from dateutil.parser import isoparse

        return _days(isoparse(text).replace(tzinfo=UTC), 1 if len(text.replace("-", "")) > 7 else 7)
    return _parsed(text)


def _parsed(text: str) -> Span:
    first = _read(text, _ONE)
    if not _YEAR_FIRST.match(text) and {
        _read(text, _ONE, dayfirst=True),
        _read(text, _ONE, yearfirst=True),
    } != {first}:
        raise ValueError("may mean one of several days: write the year first, as 2023-04-05")
    other = _read(text, _OTHER)
    if first.year != other.year:
        raise ValueError("names no year")
    if first.month != other.month:
        if first.day == other.day or first.hour == other.hour:
            raise ValueError("names no month")
        return _year(first.year)
    if first.day != other.day:
        if first.hour == other.hour:
            raise ValueError("names no day")
        following = first.year + first.month // 12, first.month % 12 + 1
        return Span(
            datetime(first.year, first.month, 1, tzinfo=UTC),
            _last() if following[0] > 9999 else datetime(*following, 1, tzinfo=UTC),
        )
    if first.hour != other.hour:
        return _days(datetime(first.year, first.month, first.day, tzinfo=UTC), 1)
    try:
        moment = first.replace(tzinfo=UTC) if first.tzinfo is None else first.astimezone(UTC)
    except ValueError:
        # A zone of a day and more.
        raise ValueError("cannot be read as a date") from None
    return Span(moment, moment)


def _read(text: str, default: datetime, **order: bool) -> datetime:
    from dateutil.parser import parse

    try:
        moment: datetime = parse(text, default=default, tzinfos=_zone, **order)
        return moment
    except (ValueError, TypeError, AttributeError, IndexError):
        # Its parser guesses by parts, and some texts that are no dates break it in other ways.
        raise ValueError("cannot be read as a date") from None


def _day(year: int, month: int, day: int) -> datetime:
    try:
        return datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        raise ValueError("cannot be read as a date") from None


def _zone(name: str | None, offset: int | None) -> tzinfo | None:
    from dateutil.tz import tzoffset

    if name is None and offset is None:
        return None
    if offset is None:
        if name not in _ZONES:
            raise ValueError(f"no known zone: {name}")
        offset = 3600 * _ZONES[name]
    zone: tzinfo = tzoffset(None, offset)
    return zone


def _year(year: int) -> Span:
    if year == 0:
        raise ValueError("is out of range")
    start = datetime(year, 1, 1, tzinfo=UTC)
    return Span(start, _last() if year == 9999 else datetime(year + 1, 1, 1, tzinfo=UTC))


def _days(start: datetime, days: int) -> Span:
    return Span(start, min(start, _last() - timedelta(days)) + timedelta(days))


def _last() -> datetime:
    return datetime.max.replace(tzinfo=UTC)
