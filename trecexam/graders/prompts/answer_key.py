"""Is an answer right? Comparison with an answer key, as EXAM does it, of texts made comparable."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import cache, lru_cache
from pathlib import Path

from converters.records import Item

#: Above this edit similarity two normalised answers are the same (Rubric workbench: fuzz ratio > 80).
SIMILAR = 80.0
_TRUE = frozenset({"yes", "correct", "true"})
_FALSE = frozenset({"no", "incorrect", "false"})

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
    """Return NLTK's variant of the Porter stemmer, with which EXAM and the Rubric workbench were published.

    It leaves words of two letters alone ("us"); Porter's own takes the s of them (Program 14(3), 1980).
    """
    from nltk.stem.porter import PorterStemmer

    # Texts repeat their words, and a stem takes some ten microseconds.
    return lru_cache(65_536)(PorterStemmer().stem)


@cache
def stop_words() -> frozenset[str]:
    """Return the 179 English stop words that the workbench removes, as NLTK lists them."""
    path = Path(__file__).parent / "texts" / "stop-words.txt"
    return frozenset(path.read_text(encoding="utf-8").split())


def normalised(text: str, *, without_stop_words: bool = False) -> str:
    """Return the text in lower case, without punctuation or, on request, stop words, each word stemmed."""
    words = unpunctuated(text).split()
    if without_stop_words:
        words = [word for word in words if word not in stop_words()]
    return " ".join(map(stemmer(), words))


def unpunctuated(text: str) -> str:
    """Return the text in lower case, without punctuation, single spaces between words."""
    return " ".join(_PUNCTUATION.sub("", text.lower()).split())


def says_unanswerable(answer: str) -> bool:
    """Return True for an answer that says nothing but that the passage does not answer."""
    # Stemming is slow, and most answers are too long to be one of the expressions.
    return len(unpunctuated(answer).split()) <= _LONGEST and normalised(answer) in map(
        normalised, UNANSWERABLE
    )


def is_correct(answer: str, key: Collection[str]) -> bool:
    """Return True where `answer` is one of the answers in `key`.

    Both are lower-cased, freed of punctuation and stop words, and Porter-stemmed. They are the same when
    the strings match (2 characters or more) or when their edit similarity (insertions and deletions, over
    both lengths) is above 0.8 (the answer has 4 characters or more). What is shorter than 2 characters then
    must match exactly, but for case and a mark at its end. A key that is just "true" takes yes, correct
    and true; "false" takes no, incorrect and false.

    Source: EXAM (Farzi and Dietz, ICTIR 2024), section on answer verification; Rubric workbench,
    `AnswerKey2Verifier`.
    """
    from rapidfuzz.fuzz import ratio

    plain, keys = unpunctuated(answer), {unpunctuated(entry) for entry in key}
    for word, means in (("true", _TRUE), ("false", _FALSE)):
        if word in keys and keys <= means:
            return plain in means
    normal = normalised(answer, without_stop_words=True)
    normal_keys = {normalised(entry, without_stop_words=True) for entry in key}
    if len(normal) >= 2 and normal in normal_keys:
        return True
    if len(normal) >= 4:
        return any(ratio(normal, entry) > SIMILAR for entry in normal_keys)
    short = {_closed(entry) for entry in key}
    return _closed(answer) in short - {""}


def correct_answer(item: Item) -> str:
    """Return the answer key as a prompt names it; of several answers any is right.

    "all of the above" and "none of the above" name choices, as `exam_verify_answer` of EXAM does.
    """
    key = " or ".join(item.gold_answers)
    choices = [text for _, text in item.choices]
    for all_or_none, start, joint in (("all", "all of ", " and "), ("none", "neither ", " nor ")):
        if choices and key.strip().lower() == f"{all_or_none} of the above":
            return start + joint.join(choices)
    return key


def _closed(text: str) -> str:
    return text.strip().rstrip(".!?,;:)").casefold()
