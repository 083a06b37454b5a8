"""Banks whose query ids are `query/facet`, as of TREC CAR ("tqa2:L_0002/T_0016")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from converters.bank_lines import BankLine
from converters.records import Item


def item_by_query(item: Item) -> Item:
    """The item under its query, where the query id is `query/facet`; else as it is.

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
