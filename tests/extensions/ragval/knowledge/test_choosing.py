from __future__ import annotations

from typing import Any

import pytest

from trecexam.extensions.ragval.knowledge.choosing import Conditions, Where
from trecexam.extensions.ragval.knowledge.dates import span


def fails(row: dict[str, Any], **given: Any) -> list[str]:
    return list(Conditions(**given).fails(row))


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("2023-06-01", []),
        ("2023-05-31", ["after"]),
        ("2023-05-31T23:59:59Z", ["after"]),
        ("2023-06-01T00:00:00Z", []),
        ("2023-06-01T00:30:00+01:00", ["after"]),
        ("2023-08-31T23:59:59Z", []),
        ("2023-09-01", ["before"]),
        # From August 28 to September 3.
        ("2023-W35", ["before"]),
        ("2023-09-01T00:00:00Z", ["before"]),
        ("2023-07", []),
        ("2023-06", []),
        # Perhaps before June, perhaps after August.
        ("2023", ["after", "before"]),
        ("June 2, 2023", []),
        (1685577600, []),
        ("soon", ["unreadable-date"]),
        ("04/05/2023", ["unreadable-date"]),
        ("", ["missing-date"]),
        (None, ["missing-date"]),
    ],
)
def test_all_of_a_date_must_lie_within(date: object, expected: list[str]) -> None:
    assert fails({"date": date}, after=span("2023-06"), before=span("2023-09")) == expected


def test_without_bounds_no_date_is_needed() -> None:
    assert fails({}) == []
    assert fails({"when": "2023"}, after=span("2022")) == ["missing-date"]


@pytest.mark.parametrize(
    ("text", "row", "holds"),
    [
        ("lang=en", {"lang": "en"}, True),
        ("lang=en", {"lang": "de"}, False),
        ("lang=en", {}, False),
        ("lang=en", {"lang": ["de", "en"]}, True),
        ("lang!=en", {"lang": "de"}, True),
        ("lang!=en", {"lang": ["de", "en"]}, False),
        ("lang!=en", {}, True),
        ("n=3", {"n": 3}, True),
        ("good=true", {"good": True}, True),
        ("url=a=b", {"url": "a=b"}, True),
    ],
)
def test_conditions_on_fields(text: str, row: dict[str, Any], holds: bool) -> None:
    assert (fails(row, where=(Where.of(text),)) == []) is holds


@pytest.mark.parametrize("text", ["lang", "=en", "!=en", ""])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="FIELD=VALUE"):
        Where.of(text)
