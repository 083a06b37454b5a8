"""The items of each query, in the order that item indices refer to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from converters.gold import KIND as GOLD
from converters.records import Item


@dataclass(frozen=True)
class Bank:
    """The items of every query.

    Attributes:
        items: query_id -> its items that are not retired, in file order; an item's 1-based place among these
            is its item index.
        retired: query_id -> its retired items. A query that has no others is here alone, and no query of
            the bank.
    """

    items: Mapping[str, tuple[Item, ...]]
    retired: Mapping[str, tuple[Item, ...]] = field(default_factory=dict)

    @classmethod
    def from_items(cls, items: Iterable[Item]) -> Bank:
        """Groups items by query, retired ones apart: here, and nowhere else, they leave the track.

        Raises:
            ValueError: an item id stands twice, be it on a retired item.
        """
        live: dict[str, list[Item]] = {}
        retired: dict[str, list[Item]] = {}
        seen: set[str] = set()
        for item in items:
            if item.item_id in seen:
                raise ValueError(f"item id '{item.item_id}' stands twice in the bank; ids must differ")
            seen.add(item.item_id)
            (retired if item.retired else live).setdefault(item.query_id, []).append(item)
        return cls(_by_query(live), _by_query(retired))

    @property
    def query_ids(self) -> tuple[str, ...]:
        """All queries that have items, sorted."""
        return tuple(self.items)

    @property
    def n_retired(self) -> int:
        """The number of retired items."""
        return sum(map(len, self.retired.values()))

    @property
    def has_importance(self) -> bool:
        """Whether any item is called vital or okay."""
        return any(item.importance for items in self.items.values() for item in items)

    @property
    def has_weights(self) -> bool:
        """Whether any item has a weight of its own."""
        return any(item.weight is not None for items in self.items.values() for item in items)

    @property
    def n_against(self) -> int:
        """The number of items that count against: their weight is negative."""
        return sum(item.counted_weight < 0 for items in self.items.values() for item in items)

    @property
    def n_vital(self) -> int:
        """The number of items that are called vital."""
        return sum(item.importance == "vital" for items in self.items.values() for item in items)

    def __len__(self) -> int:
        """The number of items that are not retired."""
        return sum(map(len, self.items.values()))


def _by_query(grouped: Mapping[str, list[Item]]) -> dict[str, tuple[Item, ...]]:
    return {query_id: tuple(grouped[query_id]) for query_id in sorted(grouped)}


def asked_digest(item: Item) -> bytes:
    """sha256 of what a model is asked about an item, for the key of its grades.

    Of gold outputs that is the query alone: these are what its answer is compared with afterwards.
    """
    if item.kind == GOLD:
        return hashlib.sha256(_canonical([GOLD, item.query_text])).digest()
    return item_digest(item)


def item_digest(item: Item) -> bytes:
    """sha256 of what an item is: its text, kind and answer key (not its id)."""
    asked = [item.kind, item.text, list(item.gold_answers), [list(choice) for choice in item.choices]]
    if item.query_text:
        asked.append(item.query_text)
    return hashlib.sha256(_canonical(asked)).digest()


def _canonical(asked: object) -> bytes:
    return json.dumps(asked, ensure_ascii=False, separators=(",", ":")).encode()


def passage_digest(text: str) -> bytes:
    """sha256 of a passage's text, whatever its id."""
    return hashlib.sha256(text.encode()).digest()
