from __future__ import annotations

import math

from trecexam.tables.excerpt import excerpt, shown
from trecexam.tables.table import Table

TABLE = Table(
    ("run", "n", "value", "reason"),
    tuple((f"run{n}", n * 1000, n / 3 if n else math.nan, "why " * 100) for n in range(9)),
)


def test_an_excerpt_has_the_first_rows_and_says_how_many_there_are() -> None:
    found = excerpt(TABLE, 2, "all.tsv", {"value": "mean", "run": "run"})
    assert found.header == ("mean", "run")
    assert found.numeric == (True, False)
    assert found.rows == (("", "run0"), ("0.333", "run1"))
    assert (found.total, found.file) == (9, "all.tsv")


def test_values_are_shown_as_people_read_them() -> None:
    assert [shown(value) for value in (None, 1234567, 0.12349, math.nan, -2.0)] == [
        "", "1,234,567", "0.123", "", "-2.000",
    ]  # fmt: skip
    assert excerpt(TABLE, 1, "f", {"reason": "reason"}).rows[0][0].startswith("why why")
    assert len(excerpt(TABLE, 1, "f", {"reason": "reason"}).rows[0][0]) == 160


def test_a_column_of_names_that_are_numbers_is_no_column_of_numbers() -> None:
    table = Table(("query_id", "n"), (("12", 3), ("13", 4)))
    assert excerpt(table, 5, "f").numeric == (False, True)
