"""When two texts say the same in the same words."""

from __future__ import annotations

import re
import unicodedata

#: Words that make no difference between a query and a question that asks nothing but it.
_IDLE = frozenset(("a", "an", "the", "is", "are", "was", "were", "do", "does", "did", "what", "who"))


def words(text: str) -> tuple[str, ...]:
    """The words of a text, without case and punctuation."""
    return tuple(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


def folded(text: str) -> tuple[str, ...]:
    """What texts share that differ in case, punctuation and blanks alone."""
    return words(text) or (text.strip(),)


def copies(text: str, query_text: str) -> bool:
    """Whether a text says the query again and nothing else."""
    item_words, query = words(text), words(query_text)
    if not item_words or not query:
        return False
    telling, query_words = (tuple(word for word in side if word not in _IDLE) for side in (item_words, query))
    return item_words == query or (bool(telling) and telling == query_words)
