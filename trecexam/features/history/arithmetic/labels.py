"""Which passages have another label, and which items are reached by others, than before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from trecexam.features.history.arithmetic.leaderboard_snapshot import ItemKey, QuerySnapshot

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
    before: Mapping[str, QuerySnapshot], after: Mapping[str, QuerySnapshot]
) -> tuple[list[ItemChange], list[LabelChange]]:
    """The items and the labels that changed: the items by query, in the bank's order; labels by passage.

    An item is the same one where its text is; one whose text changed under its id is an edited one.
    """
    items: list[ItemChange] = []
    labels: list[LabelChange] = []
    empty = QuerySnapshot((), {})
    for query_id in sorted(before.keys() | after.keys()):
        old, new = before.get(query_id, empty), after.get(query_id, empty)
        if old != new:
            here, there = _query(query_id, old, new)
            items += here
            labels += there
    return items, labels


class _ReachCounts(NamedTuple):
    """How many passages reach each item; `before` and `lost` by its place before, the others by that now."""

    before: list[int]
    lost: list[int]
    after: list[int]
    gained: list[int]


def _query(
    query_id: str, old: QuerySnapshot, new: QuerySnapshot
) -> tuple[list[ItemChange], list[LabelChange]]:
    now_of = _matched(old.items, new.items)
    labels, counts = _label_changes(query_id, old, new, now_of)
    items = [*_present_items(query_id, old, new, now_of, counts)]
    items += (
        ItemChange(
            query_id,
            item.item_id,
            "retired" if item.item_id in new.retired else "removed",
            counts.before[i],
            0,
            0,
            counts.before[i],
        )
        for i, item in enumerate(old.items)
        if i not in now_of
    )
    return items, labels


def _label_changes(
    query_id: str, old: QuerySnapshot, new: QuerySnapshot, now_of: Mapping[int, int]
) -> tuple[list[LabelChange], _ReachCounts]:
    """The passages of a query that changed, and by how many passages each item is reached."""
    moved = any(i != j for i, j in now_of.items()) or len(now_of) < len(old.items)
    n_old, n_new = len(old.items), len(new.items)
    counts = _ReachCounts([0] * n_old, [0] * n_old, [0] * n_new, [0] * n_new)
    labels = []
    for doc_id in sorted(old.passages.keys() | new.passages.keys()):
        before, bits_before = old.passages.get(doc_id, (None, 0))
        after, bits_after = new.passages.get(doc_id, (None, 0))
        # Which of the new bank's items it reached before.
        kept = sum(1 << now_of[i] for i in _bits(bits_before) if i in now_of) if moved else bits_before
        gained = list(_bits(bits_after & ~kept))
        lost = [i for i in _bits(bits_before) if i not in now_of or not bits_after >> now_of[i] & 1]
        for count, places in zip(counts, (_bits(bits_before), lost, _bits(bits_after), gained), strict=True):
            for place in places:
                count[place] += 1
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
    return labels, counts


def _present_items(
    query_id: str, old: QuerySnapshot, new: QuerySnapshot, now_of: Mapping[int, int], counts: _ReachCounts
) -> Iterator[ItemChange]:
    """The items of the bank as it is now that are new, or that changed."""
    was_at = {j: i for i, j in now_of.items()}
    for j, item in enumerate(new.items):
        if j not in was_at:
            added: Change = "un-retired" if item.item_id in old.retired else "added"
            yield ItemChange(query_id, item.item_id, added, 0, counts.after[j], counts.after[j], 0)
            continue
        i = was_at[j]
        change = _item_change(old.items[i], item)
        if change != "kept" or counts.gained[j] or counts.lost[i]:
            yield ItemChange(
                query_id,
                item.item_id,
                change,
                counts.before[i],
                counts.after[j],
                counts.gained[j],
                counts.lost[i],
            )


def _item_change(before: ItemKey, after: ItemKey) -> Change:
    if before.digest != after.digest:
        return "edited"
    return "kept" if before.importance in (None, after.importance) else "reweighed"


def _matched(old: Sequence[ItemKey], new: Sequence[ItemKey]) -> dict[int, int]:
    """Place before -> place now of the items in both: the same in all, else in text, else in id (edited)."""
    now_of: dict[int, int] = {}
    matched: set[int] = set()
    keys: tuple[Callable[[ItemKey], object], ...] = (
        lambda item: item,
        lambda item: item.digest,
        lambda item: item.item_id,
    )
    for key in keys:
        places: dict[object, list[int]] = {}
        for j, item in enumerate(new):
            if j not in matched:
                places.setdefault(key(item), []).append(j)
        for i, item in enumerate(old):
            if i not in now_of and places.get(key(item)):
                now_of[i] = places[key(item)].pop(0)
                matched.add(now_of[i])
    return now_of


def _bits(number: int) -> Iterator[int]:
    """The places of the bits that are set, lowest first."""
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low
