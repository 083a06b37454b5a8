from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from converters.records import Item
from trecexam.bank import Bank
from trecexam.bank.model import item_digest
from trecexam.extensions.banks.diff import bank_changes

A, B, C = (Item("q1", f"q1/{n}", f"{n}?") for n in "abc")


def changes(old: list[Item], new: list[Item]) -> list[tuple[str, str]]:
    found = bank_changes(Bank.from_items(old), Bank.from_items(new))
    return [(row.item_id, row.change) for row in found]


def test_each_kind_of_item_difference_has_a_name() -> None:
    retired = B._replace(retired=True)
    assert changes([A, B], [A]) == [("q1/b", "removed")]
    assert changes([A], [A, B]) == [("q1/b", "added")]
    assert changes([A, B], [A, B._replace(text="other?")]) == [("q1/b", "edited")]
    assert changes([A, B], [A, B._replace(gold_answers=("x",))]) == [("q1/b", "edited")]
    assert changes([A, B], [A, retired]) == [("q1/b", "retired")]
    assert changes([A, retired], [A, B]) == [("q1/b", "un-retired")]
    assert changes([A, B], [A, B._replace(importance="vital")]) == [("q1/b", "importance")]
    assert changes([A, B, C], [C, A, B]) == []


ITEMS = st.lists(
    st.builds(
        lambda q, i, text, retired, importance: Item(
            q, f"{q}/{i}", text, retired=retired, importance=importance
        ),
        st.sampled_from(["q1", "q2"]),
        st.integers(0, 5),
        st.sampled_from("abcd"),
        st.booleans(),
        st.sampled_from(["", "vital"]),
    ),
    unique_by=lambda item: item.item_id,
    max_size=8,
)


@given(ITEMS, ITEMS)
def test_applying_the_changes_turns_one_bank_into_the_other(old: list[Item], new: list[Item]) -> None:
    before, after = Bank.from_items(old), Bank.from_items(new)
    found = bank_changes(before, after)
    assert bank_changes(before, before) == ()

    def asked(bank: Bank) -> list[tuple[str, str, bytes, str]]:
        return sorted(
            (q, item.item_id, item_digest(item), item.importance)
            for q, items in bank.items.items()
            for item in items
        )

    turned = asked(before)
    for change in found:
        for item, do in ((change.old, turned.remove), (change.new, turned.append)):
            if item is not None and not item.retired:
                do((item.query_id, item.item_id, item_digest(item), item.importance))
    assert sorted(turned) == asked(after)
    back = {"added": "removed", "removed": "added", "retired": "un-retired", "un-retired": "retired"}
    assert sorted(back.get(row.change, row.change) for row in found) == sorted(
        row.change for row in bank_changes(after, before)
    )
