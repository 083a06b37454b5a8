from __future__ import annotations

import math

import pytest

from trecexam.results.table import Layout, Table
from trecexam.results.view import View


def page(table: Table, most: int = 20) -> View:
    return table.view(most, page=True)


def test_a_column_of_numeric_names_is_not_a_column_of_numbers() -> None:
    table = Table(("query_id", "n"), (("12", 3), ("13", 4)))
    assert [column.kind for column in page(table).columns] == ["name", "n"]


def test_the_layout_selects_and_orders_the_columns() -> None:
    layout = Layout(("run",), ("b", "a"), without=("c", "d"), ranks=(1, 1), short={"b": "B"})
    table = Table(("a", "b", "c", "run", "d", "none"), ((1, 2, 3, "x", 4, None),) * 2, layout=layout)
    found = page(table, 1)
    assert [column.heading for column in found.columns] == ["#", "run", "B", "a"]
    assert [column.values for column in found.columns] == [("1",), ("x",), ("2",), ("1",)]
    assert (found.n_rows, found.total) == (1, 2)


@pytest.mark.parametrize(
    ("ends", "values", "below"),
    [
        (("low", "high"), (0.25, 0.75), ("[0.250, 0.750]",)),
        (("low", "high"), (math.nan, math.nan), ()),
        (("stderr",), (0.1,), ("±0.100",)),
        (("low", "high", "against"), (0.25, 0.75, "better"), ("[0.250, 0.750]", "better")),
    ],
)
def test_intervals_and_errors_of_a_column_are_below_its_values(
    ends: tuple[str, ...], values: tuple[float | str, ...], below: tuple[str, ...]
) -> None:
    header = ("run", "P@5", *(f"P@5.{end}" for end in ends), "n")
    found = page(Table(header, (("x", 0.5, *values, 3),)))
    assert [column.heading for column in found.columns] == ["run", "P@5", "n"]
    assert found.columns[1].values == ("0.500",)
    assert found.columns[1].more == tuple((text,) for text in below)


def test_numbers_have_three_digits_that_a_reader_can_use() -> None:
    values = (1234, 1234.5, 74.125, 4.125, 1.0, 0.4166667, -0.0004, 0.0, -12.34)
    (found,) = page(Table(("n",), tuple((value,) for value in values))).columns
    texts = ("1,234", "1,234", "74.1", "4.12", "1.000", "0.417", "0.000", "0.000", "-12.3")
    assert found.values == texts


def test_a_column_without_values_is_omitted_except_in_an_empty_table() -> None:
    assert len(page(Table(("run", "x"), (("a", None), ("b", math.nan)))).columns) == 1
    assert len(page(Table(("run", "x"), ())).columns) == 2
