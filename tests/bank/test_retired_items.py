from __future__ import annotations

import pytest

from converters.records import Item
from trecexam.bank import Bank
from trecexam.bank.model import asked

Q1, Q2 = Item("q1", "q1/1", "a?"), Item("q1", "q1/2", "b?")
RETIRED = Item("q1", "q1/3", "c?", retired=True)
GONE = Item("q2", "q2/1", "d", "nugget", retired=True)


@pytest.mark.parametrize("retired", [(True, False), (False, True), (True, True)])
def test_a_duplicate_id_is_found_among_retired_items_too(retired: tuple[bool, bool]) -> None:
    with pytest.raises(ValueError, match="'q1/1' occurs twice"):
        Bank.from_items(Q1._replace(retired=flag) for flag in retired)


def test_only_retired_items_of_the_graded_kinds_count() -> None:
    bank = Bank.from_items([Q1, RETIRED, GONE])
    assert asked(bank, ("question",), {}).retired == {"q1": (RETIRED,)}
    assert asked(bank, ("nugget",), {}).retired == {"q2": (GONE,)}


def test_with_direct_relevance_grading_a_query_is_removed_with_its_last_item() -> None:
    texts = {"q1": "one", "q2": "two", "q3": "three"}
    assert asked(Bank.from_items([Q1, GONE]), ("query",), texts).query_ids == ("q1",)
    assert asked(Bank.from_items([GONE]), ("query",), texts).query_ids == ()
    assert asked(Bank.from_items([]), ("query",), texts).query_ids == ("q1", "q2", "q3")
