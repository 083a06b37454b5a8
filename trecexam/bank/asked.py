"""The items that a grader asks about: those of its kinds, or the queries themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from converters.records import Item
from trecexam.bank.model import Bank

#: The kind of the one item that stands for a query where relevance is graded directly.
QUERY = "query"


def asked(
    bank: Bank,
    kinds: Collection[str],
    query_texts: Mapping[str, str],
    *,
    with_query: bool = False,
    known: Collection[str] | None = None,
) -> Bank:
    """The part of a bank that a grader of these kinds of items grades.

    Args:
        kinds: "question", "nugget"; or "query" alone: then each query of the bank (of all queries, where
            the bank has none) has one item, its own text. A query without a text has none, nor has one
            whose items are all retired.
        known: the queries that a grader which knows them by their ids has grades of: only these have an item,
            and one without a text its id for it.
        with_query: the grader is told the query's text beside each item; a query without a text has no items.
    """
    if known is not None:
        query_ids = bank.query_ids or (() if bank.retired else sorted(known))
        return Bank(
            {
                # Queries of the same text have different grades: the id is a part of what is asked.
                query_id: (
                    Item(query_id, query_id, query_texts.get(query_id) or query_id, QUERY)._replace(
                        query_text=query_id
                    ),
                )
                for query_id in query_ids
                if query_id in known
            },
            bank.retired,
        )
    if QUERY in kinds:
        query_ids = bank.query_ids or (() if bank.retired else sorted(query_texts))
        return Bank(
            {
                query_id: (Item(query_id, query_id, query_texts[query_id], QUERY),)
                for query_id in query_ids
                if query_texts.get(query_id, "").strip()
            },
            bank.retired,
        )
    kept, retired = (_of_kinds(items, kinds) for items in (bank.items, bank.retired))
    if with_query:
        kept = {
            query_id: tuple(item._replace(query_text=query_texts[query_id]) for item in items)
            for query_id, items in kept.items()
            if query_texts.get(query_id, "").strip()
        }
    return Bank(kept, retired)


def _of_kinds(
    by_query: Mapping[str, tuple[Item, ...]], kinds: Collection[str]
) -> dict[str, tuple[Item, ...]]:
    kept = {
        query_id: tuple(item for item in items if item.kind in kinds) for query_id, items in by_query.items()
    }
    return {query_id: items for query_id, items in kept.items() if items}
