from __future__ import annotations

import pytest

from trecexam.results.text import number, shorten_list


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.43121, "0.431"),
        (1.0, "1.000"),
        (-2.812, "-2.81"),
        (16.44, "16.4"),
        (-0.0001, "0.000"),
        (1234.5, "1,234"),
    ],
)
def test_people_read_three_digits_that_mean_something(value: float, text: str) -> None:
    assert number(value) == text
    assert number(0.43121, 2) == "0.43"


def test_of_many_names_the_first_are_shown() -> None:
    names = [f"n{number}" for number in range(1005)]
    assert shorten_list(names[:2], 2) == "'n0', 'n1'"
    assert shorten_list(names, 2) == "'n0', 'n1' and 1,003 more"
    assert shorten_list(names, 2, quote="", dots=True) == "n0, n1, ..."
    assert shorten_list({"a": 1}.keys(), 2, dots=True) == "'a'"
    assert shorten_list([]) == ""
