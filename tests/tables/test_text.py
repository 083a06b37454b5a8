from __future__ import annotations

from trecexam.tables.text import shorten_list


def test_of_many_names_the_first_are_shown() -> None:
    names = [f"n{number}" for number in range(1005)]
    assert shorten_list(names[:2], 2) == "'n0', 'n1'"
    assert shorten_list(names, 2) == "'n0', 'n1' and 1,003 more"
    assert shorten_list(names, 2, quote="", dots=True) == "n0, n1, ..."
    assert shorten_list({"a": 1}.keys(), 2, dots=True) == "'a'"
    assert shorten_list([]) == ""
