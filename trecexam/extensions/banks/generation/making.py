"""Makes bank items from a model's answers, and counts those that are left out by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain, repeat
from typing import NamedTuple

from converters.fields import made_id
from converters.records import Item, Origin
from trecexam.bank.model import copies, folded, words
from trecexam.extensions.banks.generation.prompts import ItemPrompt, ItemRequest
from trecexam.extensions.banks.generation.reading import tidy


class DroppedItems(NamedTuple):
    """How many items were left out, by why: they say nothing, say the query again, are in the bank already,
    or come after as many as were asked for."""

    empty: int = 0
    copies: int = 0
    duplicates: int = 0
    surplus: int = 0

    def plus(self, other: DroppedItems) -> DroppedItems:
        return DroppedItems(*map(sum, zip(self, other, strict=True)))

    def __str__(self) -> str:
        counts = zip(self, ("empty", "copies of the query", "duplicates", "more than asked for"), strict=True)
        return ", ".join(f"{number:,} {what}" for number, what in counts if number)


def known_texts(items: Iterable[Item]) -> set[tuple[str, ...]]:
    """Case-folded current and former texts of a query's items, so that edited items are not generated "
    "again."""
    return {
        folded(text)
        for item in items
        for text in (item.text, item.origin.text if item.origin else "")
        if text.strip()
    }


def items_of(
    request: ItemRequest,
    texts: Iterable[str],
    prompt: ItemPrompt,
    origin: Origin,
    texts_of_query: set[tuple[str, ...]],
    importances: Iterable[str] = (),
) -> tuple[tuple[Item, ...], DroppedItems]:
    """The items in an answer, in order.

    Args:
        texts: of the items, as they are in the answer.
        origin: of all of them, without the text.
        texts_of_query: texts that the query has already (`known_texts`); those of the new items are added.
        importances: of the texts; none for none of any.
    """
    items: list[Item] = []
    dropped: Counter[str] = Counter()
    for raw, importance in zip(texts, chain(importances, repeat(""))):  # noqa: B905
        text = tidy(raw)
        if not words(text):
            dropped["empty"] += 1
        elif copies(text, request.query_text):
            dropped["copies"] += 1
        elif folded(text) in texts_of_query:
            dropped["duplicates"] += 1
        elif prompt.number is not None and len(items) >= prompt.number:
            dropped["surplus"] += 1
        else:
            texts_of_query.add(folded(text))
            items.append(
                Item(
                    request.query_id,
                    made_id(request.query_id, text),
                    text,
                    prompt.kind,
                    facet_id=request.facet_id,
                    importance=importance,
                    origin=origin._replace(text=text, importance=importance),
                )
            )
    return tuple(items), DroppedItems(**dropped)
