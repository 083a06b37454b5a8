"""Which passages have another label, and which items are reached by others, than before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trecexam.features.history.arithmetic.standing import ItemKey, QueryState

Change = Literal["added", "removed", "edited", "reweighed", "retired", "un-retired", "kept"]


@dataclass(frozen=True)
class LabelChange:
    """A passage whose label changed, or which reaches other items under the same label.

    `before` and `after` are None where it has no label: it was, or is, not in the pool or without a rating.
    `gained` and `lost` are the ids of the items that it reaches now and did not, and the other way round.
    """

    query_id: str
    doc_id: str
    before: int | None
    after: int | None
    gained: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True)
class ItemChange:
    """An item that was added, removed, retired, edited or reweighed, or is reached by other passages.

    One that was edited may have another importance, too; one that is "kept" is as it was.
    `before` and `after` count the passages that reach it; `gained` and `lost` those that do now and did not,
    and the other way round.
    """

    query_id: str
    item_id: str
    change: Change
    before: int
    after: int
    gained: int
    lost: int


def label_changes(
    before: Mapping[str, QueryState], after: Mapping[str, QueryState]
) -> tuple[list[ItemChange], list[LabelChange]]:
    """The items and the labels that changed: the items by query, in the bank's order; labels by passage.

    An item is the same one where its text is; one whose text changed under its id is an edited one.
    """
    items: list[ItemChange] = []
    labels: list[LabelChange] = []
    empty = QueryState((), {})
    for query_id in sorted(before.keys() | after.keys()):
        old, new = before.get(query_id, empty), after.get(query_id, empty)
        if old != new:
            here, there = _query(query_id, old, new)
            items += here
            labels += there
    return items, labels


def _query(query_id: str, old: QueryState, new: QueryState) -> tuple[list[ItemChange], list[LabelChange]]:
    same = _matched(old.items, new.items)
    moved = any(i != j for i, j in same.items()) or len(same) < len(old.items)
    reached_before, lost_by = [0] * len(old.items), [0] * len(old.items)
    reached_after, gained_by = [0] * len(new.items), [0] * len(new.items)
    labels = []
    for doc_id in sorted(old.passages.keys() | new.passages.keys()):
        before, bits_before = old.passages.get(doc_id, (None, 0))
        after, bits_after = new.passages.get(doc_id, (None, 0))
        # Which of the new bank's items it reached before.
        kept = sum(1 << same[i] for i in _bits(bits_before) if i in same) if moved else bits_before
        gained = list(_bits(bits_after & ~kept))
        lost = [i for i in _bits(bits_before) if i not in same or not bits_after >> same[i] & 1]
        for counts, places in (
            (reached_before, _bits(bits_before)),
            (reached_after, _bits(bits_after)),
            (gained_by, gained),
            (lost_by, lost),
        ):
            for place in places:
                counts[place] += 1
        if before != after or gained or lost:
            labels.append(
                LabelChange(
                    query_id,
                    doc_id,
                    before,
                    after,
                    tuple(new.items[j].item_id for j in gained),
                    tuple(old.items[i].item_id for i in lost),
                )
            )
    origin = {j: i for i, j in same.items()}
    items = []
    for j, item in enumerate(new.items):
        i = origin.get(j)
        if i is None:
            back = item.item_id in old.retired
            counts_here = 0, reached_after[j], reached_after[j], 0
            items.append(ItemChange(query_id, item.item_id, "un-retired" if back else "added", *counts_here))
            continue
        change: Change = "kept"
        if old.items[i].digest != item.digest:
            change = "edited"
        elif old.items[i].importance not in (None, item.importance):
            change = "reweighed"
        if change != "kept" or gained_by[j] or lost_by[i]:
            counts_here = reached_before[i], reached_after[j], gained_by[j], lost_by[i]
            items.append(ItemChange(query_id, item.item_id, change, *counts_here))
    items += (
        ItemChange(
            query_id,
            item.item_id,
            "retired" if item.item_id in new.retired else "removed",
            reached_before[i],
            0,
            0,
            reached_before[i],
        )
        for i, item in enumerate(old.items)
        if i not in same
    )
    return items, labels


def _matched(old: Sequence[ItemKey], new: Sequence[ItemKey]) -> dict[int, int]:
    """Place before -> place now of the items in both: the same in all, else in text, else in id (edited)."""
    found: dict[int, int] = {}
    taken: set[int] = set()
    keys: tuple[Callable[[ItemKey], object], ...] = (
        lambda item: item,
        lambda item: item.digest,
        lambda item: item.item_id,
    )
    for key in keys:
        places: dict[object, list[int]] = {}
        for j, item in enumerate(new):
            if j not in taken:
                places.setdefault(key(item), []).append(j)
        for i, item in enumerate(old):
            if i not in found and places.get(key(item)):
                found[i] = places[key(item)].pop(0)
                taken.add(found[i])
    return found


def _bits(number: int) -> Iterator[int]:
    """The places of the bits that are set, lowest first."""
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low
