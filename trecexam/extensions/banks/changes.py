"""Which items differ between two banks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from converters.records import Item
from trecexam.bank.model import Bank, item_digest

Change = Literal["added", "removed", "edited", "retired", "un-retired", "importance", "renamed"]


class BankChange(NamedTuple):
    """An item whose text, importance or id differs between the banks.

    `change` is "edited" where the text, the kind or the answer key is another; "importance" and "renamed"
    where only the importance (or the weight) or the id is. `old` and `new` are None where the item is not
    there.
    """

    query_id: str
    item_id: str
    change: Change
    old: Item | None
    new: Item | None


def bank_changes(old: Bank, new: Bank) -> tuple[BankChange, ...]:
    """The differences by query, in the new bank's order; then items that the new bank lacks.

    An item is the same one where its query and id are, else where its query and text are. What is
    retired in both, or added or removed as a retired item, makes no difference.
    """
    return tuple(
        change for query_id in sorted(_queries(old) | _queries(new)) for change in _query(query_id, old, new)
    )


def _queries(bank: Bank) -> set[str]:
    return {*bank.items, *bank.retired}


def _query(query_id: str, old: Bank, new: Bank) -> Iterator[BankChange]:
    before, after = ([*bank.items.get(query_id, ()), *bank.retired.get(query_id, ())] for bank in (old, new))
    origin: dict[int, int] = {}
    keys: tuple[Callable[[Item], object], ...] = (lambda item: item.item_id, item_digest)
    for key in keys:
        matched = set(origin.values())
        indices: dict[object, list[int]] = {}
        for i, item in enumerate(before):
            if i not in matched:
                indices.setdefault(key(item), []).append(i)
        for j, item in enumerate(after):
            if j not in origin and indices.get(key(item)):
                origin[j] = indices[key(item)].pop(0)
    for j, item in enumerate(after):
        was = before[origin[j]] if j in origin else None
        change = _change(was, item)
        if change is not None:
            yield BankChange(query_id, item.item_id, change, was, item)
    matched_before = set(origin.values())
    for i, was in enumerate(before):
        if i not in matched_before and not was.retired:
            yield BankChange(query_id, was.item_id, "removed", was, None)


def _change(old: Item | None, new: Item) -> Change | None:
    if old is None:
        return None if new.retired else "added"
    if old.retired != new.retired:
        return "retired" if new.retired else "un-retired"
    if new.retired:
        return None
    if item_digest(old) != item_digest(new):
        return "edited"
    if (old.importance, old.weight) != (new.importance, new.weight):
        return "importance"
    return "renamed" if old.item_id != new.item_id else None
