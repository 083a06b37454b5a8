"""Finds an answer in a passage, to highlight it.

An answer is looked for unchanged, but for case, punctuation and blanks. Sentences that are not there in these
words are aligned by rapidfuzz with the stretch of the passage that is most like them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import accumulate
from typing import NamedTuple

#: The least likeness of a sentence and a stretch of the passage, 0..100: rapidfuzz's partial ratio, which is
#: Levenshtein's with insertions and deletions alone, relative to both lengths. At 80 every fifth letter may
#: be another one.
CUTOFF = 80.0
#: Letters that a sentence must have to be aligned: "the king" is like too much.
_LEAST = 12
#: Letters of an answer that are looked at, and of one of its sentences.
_MOST, _MOST_OF_SENTENCE = 4_000, 600
#: Letters of a passage times those of a sentence that are aligned as they are; of more than that only the
#: stretch that shares the most words. rapidfuzz can take a quarter of a second for 500 letters in 100,000.
_WORK = 1_000_000
#: A word that stands more often than that in a passage does not tell where to look.
_RARE = 50
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
    index: dict[str, list[int]] = {}
    for sentence in _SENTENCE.split(answer):
        sentence_words = _words(sentence)[:_MOST_OF_SENTENCE]
        if len(sentence_words) < _LEAST:
            continue
        span = _exact(folded, sentence_words)
        if span is None:
            if not index and len(sentence_words) * len(folded.text) > _WORK:
                index = _index(folded, set(words.split(" ")))
            span = _alike(folded.text, sentence_words, index)
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


def _index(folded: _Folded, words: Collection[str]) -> dict[str, list[int]]:
    """All positions of each of these words."""
    index: dict[str, list[int]] = {}
    for word, start in zip(folded.words, folded.starts, strict=True):
        if word in words:
            index.setdefault(word, []).append(start)
    return index


def _alike(text: str, words: str, index: Mapping[str, list[int]]) -> tuple[int, int] | None:
    """The most similar stretch of words, if similar enough."""
    from rapidfuzz import fuzz

    start, end = (0, len(text)) if len(words) * len(text) <= _WORK else _neighbourhood(words, index)
    if len(words) > end - start:
        return None
    alignment = fuzz.partial_ratio_alignment(words, text[start : min(end, len(text))], score_cutoff=CUTOFF)
    if alignment is None or alignment.dest_end <= alignment.dest_start:
        return None
    return _whole_words(text, start + alignment.dest_start, start + alignment.dest_end)


def _whole_words(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The words that are at least half in the stretch, since rapidfuzz may add a letter."""
    first, last = text.rfind(" ", 0, start + 1) + 1, text.find(" ", end - 1)
    after = text.find(" ", start)
    if 2 * (after - start) < after - first:
        first = after + 1
    before = text.rfind(" ", 0, end) + 1
    if 2 * (end - before) < last - before:
        last = before - 1
    return (first, last) if first < last else None


def _neighbourhood(words: str, index: Mapping[str, list[int]]) -> tuple[int, int]:
    """The stretch with most of these words, up to four times their length.

    Returns:
        (0, 0) where there is none with a third of those words that tell where to look.
    """
    telling = {word for word in words.split(" ") if len(index.get(word, ())) <= _RARE}
    occurrences = sorted((offset, word) for word in telling for offset in index.get(word, ()))
    best, first = (0, 0), 0
    inside: Counter[str] = Counter()
    for offset, word in occurrences:
        inside[word] += 1
        while offset - occurrences[first][0] > 2 * len(words):
            left = occurrences[first][1]
            inside[left] -= 1
            if not inside[left]:
                del inside[left]
            first += 1
        best = max(best, (len(inside), offset))
    count, end = best
    if not count or 3 * count < len(telling):
        return 0, 0
    return max(0, end - 3 * len(words)), end + len(words)


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
