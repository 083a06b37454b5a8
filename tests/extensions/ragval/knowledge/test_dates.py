from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.ragval.knowledge.dates import span


def day(year: int, month: int, number: int) -> datetime:
    return datetime(year, month, number, tzinfo=UTC)


MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)).map(
    lambda each: each.replace(microsecond=0)
)
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@pytest.mark.parametrize(
    "text",
    [
        *("2023-01-05", "20230105", "2023/01/05", "2023.1.5", "2023-01-05 ", "2023-W01-4"),
        *("January 5, 2023", "Jan 5 2023", "5 January 2023", "5th of January, 2023", "Thu, 05 Jan 2023"),
    ],
)
def test_a_day_is_read_in_many_forms(text: str) -> None:
    assert span(text) == (day(2023, 1, 5), day(2023, 1, 6))


@pytest.mark.parametrize(
    "value",
    [
        *("2023-01-05T08:30:00Z", "2023-01-05T10:30:00+02:00", "2023-01-05 08:30", "20230105T083000Z"),
        *("Thu, 05 Jan 2023 08:30:00 GMT", "Thu, 05 Jan 2023 03:30:00 EST", "January 5, 2023 8:30 am"),
        *(1672907400, 1672907400.0, 1672907400000, "1672907400", "1672907400000"),
    ],
)
def test_a_moment_is_read_in_many_forms(value: object) -> None:
    moment = datetime(2023, 1, 5, 8, 30, tzinfo=UTC)
    assert span(value) == (moment, moment)


@pytest.mark.parametrize(
    ("value", "start", "end"),
    [
        ("2023", day(2023, 1, 1), day(2024, 1, 1)),
        (2023, day(2023, 1, 1), day(2024, 1, 1)),
        # Milliseconds: as seconds it would be in the year 31969.
        (946684800000, day(2000, 1, 1), day(2000, 1, 1)),
        ("2023-12", day(2023, 12, 1), day(2024, 1, 1)),
        ("February 2023", day(2023, 2, 1), day(2023, 3, 1)),
        ("02/2023", day(2023, 2, 1), day(2023, 3, 1)),
        ("2023-W05", day(2023, 1, 30), day(2023, 2, 6)),
        ("13/05/2023", day(2023, 5, 13), day(2023, 5, 14)),
        ("05/13/2023", day(2023, 5, 13), day(2023, 5, 14)),
        ("04/04/2023", day(2023, 4, 4), day(2023, 4, 5)),
    ],
)
def test_what_is_less_exact_names_more_time(value: object, start: datetime, end: datetime) -> None:
    assert span(value) == (start, end)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        *((each, "neither text nor a number") for each in (None, True, [], {})),
        *((each, "empty") for each in ("", "  ")),
        *((each, "cannot be read") for each in ("soon", "2023-02-30", "2023-13-01", "20231301", "x" * 1000)),
        *((each, "no year") for each in ("Monday", "5 January", "10:30")),
        *((each, "one of several days") for each in ("04/05/2023", "01-02-03", "5.1.2023")),
        *(
            (each, "out of range")
            for each in (float("nan"), float("inf"), 10**30, "0000", "0001-01-01T00:00+14")
        ),
        ("2023-01-05 10:00 ABCD", "cannot be read"),
    ],
)
def test_what_is_no_date_or_may_be_two_says_so(value: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        span(value)


@given(MOMENTS, ZONES)
def test_written_moments_are_read_as_they_are(moment: datetime, zone: timezone) -> None:
    there = moment.replace(tzinfo=zone)
    expected = there.astimezone(UTC)
    for value in (there.isoformat(), there.isoformat(" "), format_datetime(there)):
        assert span(value) == (expected, expected)


@given(MOMENTS)
def test_written_days_are_read_as_they_are(moment: datetime) -> None:
    start = day(moment.year, moment.month, moment.day)
    for form in ("%Y-%m-%d", "%Y%m%d", "%Y/%m/%d", "%B %d, %Y", "%d %b %Y"):
        assert span(moment.strftime(form)) == (start, start + timedelta(days=1))
    assert span(moment.strftime("%Y-%m"))[0] == day(moment.year, moment.month, 1)


@given(st.one_of(st.text(max_size=30), st.floats(), st.integers()))
def test_anything_is_a_date_or_a_reason(value: object) -> None:
    with contextlib.suppress(ValueError):
        start, end = span(value)
        assert start <= end
        assert start.tzinfo == UTC == end.tzinfo
