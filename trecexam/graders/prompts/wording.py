"""Texts made comparable: lower case, no punctuation, stemmed words."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: What FLAN-T5 writes when the passage does not answer (Rubric workbench, `UnanswerableMatcher`).
UNANSWERABLE = (
    "unanswerable",
    "no",
    "no answer",
    "not enough information",
    "unknown",
    "it is not possible to tell",
    "it does not say",
    "no relevant information",
)
_LONGEST = max(len(expression.split()) for expression in UNANSWERABLE)
_PUNCTUATION = re.compile(r"[^\w\s]|_")


@cache
def stemmer() -> Callable[[str], str]:
    """The Porter stemmer (Porter, "An algorithm for suffix stripping", Program 14(3), 1980)."""
    from snowballstemmer import stemmer as make

    stem: Callable[[str], str] = make("porter").stemWord
    return stem


@cache
def stop_words() -> frozenset[str]:
    """The 179 English stop words that the workbench removes, as NLTK lists them."""
    path = Path(__file__).parent / "texts" / "stop-words.txt"
    return frozenset(path.read_text(encoding="utf-8").split())


def normalised(text: str, *, without_stop_words: bool = False) -> str:
    """Lower-cased, without punctuation, each word stemmed, single spaces between.

    Args:
        without_stop_words: leave these out as well.
    """
    words = unpunctuated(text).split()
    if without_stop_words:
        words = [word for word in words if word not in stop_words()]
    return _stemmed(words)


def unpunctuated(text: str) -> str:
    """Lower-cased, without punctuation, single spaces between words."""
    return " ".join(_PUNCTUATION.sub("", text.lower()).split())


def _stemmed(words: list[str]) -> str:
    stem = stemmer()
    return " ".join(stem(word) for word in words)


@cache
def _unanswerable() -> frozenset[str]:
    return frozenset(map(normalised, UNANSWERABLE))


def says_unanswerable(answer: str) -> bool:
    """Whether an answer says nothing but that the passage does not answer."""
    words = unpunctuated(answer).split()
    # Stemming is slow, and most answers are too long to be one of the expressions.
    return len(words) <= _LONGEST and _stemmed(words) in _unanswerable()
