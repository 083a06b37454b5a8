"""Which people's labels of sentences with cited passages count, on the responses as they are now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from converters.records import HumanRating, Item
from trecexam.bank.model import Bank
from trecexam.line.overrides import NOT_CITED, Decision, Overrides, resolve
from trecexam.line.support import PREFIX

#: Full support; 1 is partial, 0 none.
BEST: Final = 2


def is_of_statement(row: HumanRating, bank: Bank) -> bool:
    """Whether a line of overrides.tsv is about a sentence of a response, and no item of the bank."""
    known = (*bank.items.get(row.query_id, ()), *bank.retired.get(row.query_id, ()))
    return row.item_id.startswith(PREFIX) and all(item.item_id != row.item_id for item in known)


def resolve_support(
    rows: Sequence[tuple[int, HumanRating]],
    file: str,
    citing: Iterable[tuple[Item, Sequence[str]]],
    texts: Mapping[str, str],
) -> Overrides:
    """As `resolve`, of sentences with what they cite; what no response cites now waits, as "not cited".

    Args:
        file: overrides.tsv, as people see it.
        citing: sentences, and the doc_ids of what they cite.
        texts: doc_id -> text of the cited passages that have one.
    """
    items: dict[str, dict[str, Item]] = {}
    cited: set[tuple[str, str, str]] = set()
    for item, doc_ids in citing:
        items.setdefault(item.query_id, {})[item.item_id] = item
        cited.update((item.query_id, doc_id, item.item_id) for doc_id in doc_ids)
    docs: dict[str, dict[str, None]] = {}
    for query_id, doc_id, _ in sorted(cited):
        docs.setdefault(query_id, {})[doc_id] = None
    known: list[tuple[int, HumanRating]] = []
    waiting: list[Decision] = []
    for line, row in rows:
        if row[:3] in cited:
            known.append((line, row))
        else:
            waiting.append(Decision(line, row, NOT_CITED))
    bank = Bank({query_id: tuple(of_query.values()) for query_id, of_query in items.items()}, {})
    pool = {query_id: tuple(of_query) for query_id, of_query in docs.items()}
    overrides = resolve(known, file, bank, pool, texts, BEST)
    # The passages of a query with the same text are alike, and the sentence cites some of them.
    ratings = {key: row for key, row in overrides.ratings.items() if key in cited}
    return Overrides({}, ratings, (*overrides.decisions, *waiting), overrides.rejected)
