"""Texts made comparable: lower case, no punctuation, stemmed words."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path

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
    """NLTK's variant of the Porter stemmer, with which EXAM and the Rubric workbench were published.

    It leaves words of two letters alone ("us"), where Porter's own takes the s of them (Porter, "An algorithm
    for suffix stripping", Program 14(3), 1980).
    """
    from nltk.stem.porter import PorterStemmer

    # Texts repeat their words, and a stem takes some ten microseconds.
    return lru_cache(65_536)(PorterStemmer().stem)


@cache
def stop_words() -> frozenset[str]:
    """The 179 English stop words that the workbench removes, as NLTK lists them."""
    path = Path(__file__).parent / "texts" / "stop-words.txt"
    return frozenset(path.read_text(encoding="utf-8").split())


def normalised(text: str, *, without_stop_words: bool = False) -> str:
    """Return the text in lower case, without punctuation, each word stemmed, single spaces between.

    Args:
        without_stop_words: leave these out as well.
    """
    words = unpunctuated(text).split()
    if without_stop_words:
        words = [word for word in words if word not in stop_words()]
    return " ".join(map(stemmer(), words))


def unpunctuated(text: str) -> str:
    """Return the text in lower case, without punctuation, single spaces between words."""
    return " ".join(_PUNCTUATION.sub("", text.lower()).split())


@cache
def _unanswerable() -> frozenset[str]:
    return frozenset(map(normalised, UNANSWERABLE))


def says_unanswerable(answer: str) -> bool:
    """Return True for an answer that says nothing but that the passage does not answer."""
    # Stemming is slow, and most answers are too long to be one of the expressions.
    return len(unpunctuated(answer).split()) <= _LONGEST and normalised(answer) in _unanswerable()
