"""Finds an answer in a passage, to highlight it.

An answer, or each of its sentences, is looked for unchanged, but for case, punctuation and blanks.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

#: Letters that a sentence must have to be looked for by itself.
_LEAST = 12
#: Letters of an answer that are looked at.
_MOST = 4_000
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")  # noqa: RUF001 - Chinese and Japanese sentences
_RATING = re.compile(r"\W*(?:(?:rating|score|grade|answer|label)\W*)?\d(?:\s*(?:/|out of|of)\s*\d)?\W*", re.I)
_NO_ANSWER = frozenset(
    ("unanswerable", "not answerable", "no answer", "not mentioned", "none", "n a", "na", "no", "yes")
)


class MarkedPiece(NamedTuple):
    """A part of a passage, marked or not."""

    text: str
    is_marked: bool


class _Folded(NamedTuple):
    """A text's words in lower case, with their positions in the text."""

    text: str
    words: list[str]
    starts: list[int]
    spans: list[tuple[int, int]]


def marked(passage: str, answer: str) -> list[MarkedPiece]:
    """The passage in pieces, with the answer marked.

    Nothing is marked for an answer that is a rating or says that there is no answer.

    Returns:
        Pieces whose texts make up the passage, none of them empty; [] for an empty passage.
    """
    return _pieces(passage, _spans(passage, answer))


def _pieces(passage: str, spans: Iterator[tuple[int, int]]) -> list[MarkedPiece]:
    pieces: list[MarkedPiece] = []
    at = 0
    for start, end in _merged(spans):
        pieces += (MarkedPiece(passage[at:start], False), MarkedPiece(passage[start:end], True))
        at = end
    pieces.append(MarkedPiece(passage[at:], False))
    return [piece for piece in pieces if piece.text]


def _spans(passage: str, answer: str) -> Iterator[tuple[int, int]]:
    answer = answer[:_MOST].strip()
    words = _words(answer)
    if not words or words in _NO_ANSWER or _RATING.fullmatch(answer):
        return
    folded = _folded(passage)
    span = _exact(folded, words)
    if span is not None:
        yield _span(folded, *span)
        return
    for sentence in _SENTENCE.split(answer):
        sentence_words = _words(sentence)
        span = _exact(folded, sentence_words) if len(sentence_words) >= _LEAST else None
        if span is not None:
            yield _span(folded, *span)


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def _folded(text: str) -> _Folded:
    matches = list(_WORD.finditer(text))
    # A word may become longer, as the German sharp s does.
    words = [match[0].casefold() for match in matches]
    starts = list(accumulate((len(word) + 1 for word in words), initial=1))[:-1]
    return _Folded(f" {' '.join(words)} ", words, starts, [match.span() for match in matches])


def _exact(folded: _Folded, words: str) -> tuple[int, int] | None:
    """The first position of these words as whole words."""
    at = folded.text.find(f" {words} ")
    return None if at < 0 else (at + 1, at + 1 + len(words))


def _span(folded: _Folded, start: int, end: int) -> tuple[int, int]:
    """The positions in the text of the words that begin in this stretch."""
    first, last = bisect_left(folded.starts, start), bisect_left(folded.starts, end) - 1
    return folded.spans[first][0], folded.spans[last][1]


def _merged(spans: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorted spans, with overlapping or adjacent ones merged."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged
