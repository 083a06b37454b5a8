"""Search of an answer in a passage to highlight, ignoring case, punctuation and blanks."""

from __future__ import annotations

import re
from itertools import groupby

#: Maximum letters of an answer, and minimum letters of a sentence to search separately.
_MOST, _LEAST = 4_000, 12
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")  # noqa: RUF001 - Chinese and Japanese sentences
_RATING = re.compile(r"\W*(?:(?:rating|score|grade|answer|label)\W*)?\d(?:\s*(?:/|out of|of)\s*\d)?\W*", re.I)
_NO_ANSWER = frozenset(
    ("unanswerable", "not answerable", "no answer", "not mentioned", "none", "n a", "na", "no", "yes")
)


def marked(passage: str, answer: str) -> list[tuple[str, bool]]:
    """Return the passage in pieces, with the answer, or its sentences found in the passage, marked.

    Nothing is marked for an answer that is a rating or says that there is no answer.

    Returns:
        Texts that make up the passage, none of them empty, and whether each is marked.
    """
    answer = answer[:_MOST].strip()
    if " ".join(re.findall(r"\w+", answer.lower())) in _NO_ANSWER or _RATING.fullmatch(answer):
        spans: list[tuple[int, int]] = []
    else:
        spans = _spans(passage, [answer]) or _spans(
            passage, [each for each in _SENTENCE.split(answer) if len(each) >= _LEAST]
        )
    inside = {at for start, end in spans for at in range(start, end)}
    parts = groupby(enumerate(passage), lambda letter: letter[0] in inside)
    return [("".join(sign for _, sign in part), is_marked) for is_marked, part in parts]


def _spans(passage: str, texts: list[str]) -> list[tuple[int, int]]:
    """Return the span of the first whole-word match of each text in the passage."""
    patterns = (r"\W+".join(map(re.escape, re.findall(r"\w+", text))) for text in texts)
    matches = (re.search(rf"\b{pattern}\b", passage, re.I) for pattern in patterns if pattern)
    return [match.span() for match in matches if match]
