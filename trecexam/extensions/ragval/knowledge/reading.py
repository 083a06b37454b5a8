"""Reading of a question from a language model's answer; anything else is rejected."""

from __future__ import annotations

import re

from trecexam.graders.replies import Unread, fence_removed, json_value, unwrapped, whole_text

#: Characters of a question, at most.
LONGEST = 1000
#: Question marks of several scripts.
_MARKS = ("?", "\uff1f", "\u061f", "\u037e")
_LABEL = re.compile(r"(?:[*_#\s]*+(?:an?\s+)?(?:creative\s+)?question\s*+\d*+\s*+:[*_\s]*+)", re.IGNORECASE)
_LISTED = re.compile(r"\s*(?:\(?\d{1,3}[.):]|[-*\u2022\u2013])\s+\S")
_QUOTES = {'"': '"', "\u201c": "\u201d", "\u00ab": "\u00bb", "\u201e": "\u201c", "*": "*"}


def read_question(answer: str, *, cut: bool = False) -> str | Unread:
    """Return the question in an answer, without introduction, label and quotation marks.

    Args:
        cut: the model was stopped before its end.
    """
    text = whole_text(answer, cut=cut)
    if isinstance(text, Unread):
        return text
    value = json_value(text)
    text = value if isinstance(value, str) else unwrapped(fence_removed(text))
    if not text.strip():
        return Unread("empty answer")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].endswith(":") and not any(mark in lines[0] for mark in _MARKS):
        del lines[0]
    question_lines = [line for line in lines if any(mark in line for mark in _MARKS)]
    if len(question_lines) > 1 and sum(_LISTED.match(line) is not None for line in question_lines) > 1:
        return Unread("several questions")
    question = " ".join(lines)
    if len(question) <= 2 * LONGEST:
        # Longer texts are too long even without a label, and slow to search.
        question = _unquoted(_LABEL.sub("", question, count=1))
    if not any(mark in question for mark in _MARKS):
        return Unread("no question mark")
    if len(question) > LONGEST:
        return Unread(f"longer than {LONGEST:,} characters")
    return question


def _unquoted(text: str) -> str:
    text = text.strip()
    while len(text) > 2 and _QUOTES.get(text[0]) == text[-1]:
        text = text[1:-1].strip()
    return text
