"""The items of each query, in the order that item indices refer to; and when two texts say the same."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from converters.bank_lines import BankLine
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
            ValueError: an item id occurs twice, be it on a retired item.
        """
        live: dict[str, list[Item]] = {}
        retired: dict[str, list[Item]] = {}
        seen: set[str] = set()
        for item in items:
            if item.item_id in seen:
                raise ValueError(f"item id '{item.item_id}' occurs twice in the bank; ids must differ")
            seen.add(item.item_id)
            (retired if item.retired else live).setdefault(item.query_id, []).append(item)
        by_query = [{query_id: tuple(of[query_id]) for query_id in sorted(of)} for of in (live, retired)]
        return cls(*by_query)

    @property
    def query_ids(self) -> tuple[str, ...]:
        """Return all queries that have items, sorted."""
        return tuple(self.items)

    @property
    def n_retired(self) -> int:
        """The number of retired items."""
        return sum(map(len, self.retired.values()))

    @property
    def has_importance(self) -> bool:
        """Return True where any item is called vital or okay."""
        return any(item.importance for items in self.items.values() for item in items)

    @property
    def has_weights(self) -> bool:
        """Return True where any item has its own weight."""
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


def asked_digest(item: Item) -> bytes:
    """sha256 of the prompts of a model about an item, for the key of its grades.

    Of gold outputs that is the query alone: these are what its answer is compared with afterwards.
    """
    if item.kind == GOLD:
        return hashlib.sha256(_canonical([GOLD, item.query_text])).digest()
    return item_digest(item)


def item_digest(item: Item) -> bytes:
    """sha256 of what an item is: its text, kind and answer key (not its id)."""
    content = [item.kind, item.text, list(item.gold_answers), [*map(list, item.choices)]]
    if item.query_text:
        content.append(item.query_text)
    return hashlib.sha256(_canonical(content)).digest()


def _canonical(content: object) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def passage_digest(text: str) -> bytes:
    """sha256 of a passage's text, whatever its id."""
    return hashlib.sha256(text.encode()).digest()


#: The kind of the one item that means a query where relevance is graded directly.
QUERY = "query"
#: The kind of items that are sentences of responses.
STATEMENT = "statement"


def asked(
    bank: Bank,
    kinds: Collection[str],
    query_texts: Mapping[str, str],
    *,
    with_query: bool = False,
    known_query_ids: Collection[str] | None = None,
) -> Bank:
    """The part of a bank that a grader of these kinds of items grades.

    Args:
        kinds: "question", "nugget"; or "query" alone: then each query of the bank (of all queries, where
            the bank has none) has one item, its own text. A query without a text has none, nor has one
            whose items are all retired.
        known_query_ids: the queries that a grader which knows them by their ids has grades of: only these
            have an item, and one without a text its id for it.
        with_query: the grader is told the query's text beside each item; a query without a text has no items.
    """
    if known_query_ids is not None or QUERY in kinds:
        with_text = (query_id for query_id, text in query_texts.items() if text.strip())
        known = frozenset(with_text if known_query_ids is None else known_query_ids)
        query_ids = bank.query_ids or (() if bank.retired else sorted(known))
        # Known by their ids, queries of the same text have different grades: the id is a part of the key.
        items = {
            query_id: Item(query_id, query_id, query_texts.get(query_id) or query_id, QUERY)._replace(
                query_text="" if known_query_ids is None else query_id
            )
            for query_id in query_ids
            if query_id in known
        }
        return Bank({query_id: (item,) for query_id, item in items.items()}, bank.retired)
    active, retired = (
        {
            query_id: kept
            for query_id, items in of.items()
            if (kept := tuple(i for i in items if i.kind in kinds))
        }
        for of in (bank.items, bank.retired)
    )
    if with_query:
        active = {
            query_id: tuple(item._replace(query_text=query_texts[query_id]) for item in items)
            for query_id, items in active.items()
            if query_texts.get(query_id, "").strip()
        }
    return Bank(active, retired)


def item_by_query(item: Item) -> Item:
    """The item under its query, where the query id is `query/facet`; else unchanged.

    The query ends at the first slash: a facet may be a path of headings.
    """
    query_id, _, facet_id = item.query_id.partition("/")
    return item._replace(query_id=query_id, facet_id=facet_id) if query_id and facet_id else item


def lines_by_query(lines: Iterable[BankLine], *, facets: bool) -> Iterator[BankLine]:
    """A bank's lines, with `facets` each under its query. The text of a facet is none of its query."""
    for line in lines:
        query_id, _, facet_id = line.query_id.partition("/")
        if facets and query_id and facet_id:
            items = tuple(map(item_by_query, line.items))
            yield line._replace(query_id=query_id, query_text="", items=items)
        else:
            yield line


#: Words that make no difference between a query and a question that asks nothing but it.
_IDLE = frozenset(("a", "an", "the", "is", "are", "was", "were", "do", "does", "did", "what", "who"))


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text, without case and punctuation."""
    return tuple(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


def folded(text: str) -> tuple[str, ...]:
    """Return what texts share that differ in case, punctuation and blanks alone."""
    return words(text) or (text.strip(),)


def copies(text: str, query_text: str) -> bool:
    """Return True for a text that says the query again and nothing else."""
    item_words, query = words(text), words(query_text)
    if not item_words or not query:
        return False
    telling, query_words = (tuple(word for word in side if word not in _IDLE) for side in (item_words, query))
    return item_words == query or (bool(telling) and telling == query_words)
