"""Finds remains of a language model's answer around the text of an item."""

from __future__ import annotations

import re

#: Patterns before an item, with their descriptions. In the CAR Y3 bank: `['1. How`, `[2] What`, `- Why`.
_BEFORE = (
    (
        "a number before it",
        r"[\s\[(\"'*]*(?:\[\d{1,3}\]|\(?\d{1,3}[.)]|(?:Q|question|nugget|fact) ?\d{1,3} ?[.):])\s",
    ),
    ("a bullet before it", r"\s*[-*•\u2013\u2014·]\s"),
    ("the beginning of a list", r"\s*\w+\s*=\s*[\[{]"),
    ("a label before it", r"\s*(?:question|nugget|fact)s?\s*:\s*\S"),
    (
        "a reply of the model, not an item",
        r"\s*(?:sure|certainly|of course)\b\s*[,!.:]|\s*here (?:are|is) .*:\s*$",
    ),
)
_WITHIN = (
    ("a reply of the model, not an item", r"\bas an ai\b"),
    ("Markdown in it", r"```|\*\*\S.*\*\*"),
    (
        "a placeholder of the prompt in it",
        r"\{(?:query|query_text|query_title|query_subtopic|subtopic|title|text|passage|context)\}",
    ),
    ("brackets, quotes or commas of a list around it", r"^[\[{]\s*[\"'{\[]|[\"']\s*[,\]}]+$"),
)
_COMPILED_BEFORE = tuple((what, re.compile(pattern, re.IGNORECASE)) for what, pattern in _BEFORE)
_COMPILED_WITHIN = tuple((what, re.compile(pattern, re.IGNORECASE)) for what, pattern in _WITHIN)
_LIST = _WITHIN[-1][0]


def junk_in(text: str) -> str | None:
    """Describes what remains of the answer in an item's text; None if nothing does."""
    inner = text.strip()
    if not any(character.isalnum() for character in inner):
        return "contains no words"
    if len(inner.splitlines()) > 1:
        return "several lines in one item"
    for what, pattern in _COMPILED_BEFORE:
        if pattern.match(text):
            return what
    for what, pattern in _COMPILED_WITHIN:
        if pattern.search(inner):
            return what
    if any(
        (inner.startswith(left) and right not in inner) or (inner.endswith(right) and left not in inner)
        for left, right in ("[]", "{}")
    ):
        return _LIST
    if _quoted(inner):
        return "quotes around it"
    return f"ends with '{inner[-1]}'" if inner[-1] in ",:;=" else None


def _quoted(text: str) -> bool:
    """Whether the text is in quotes, or begins with a quote that is not closed."""
    for opening, closing in ('""', "“”", "''", "``"):
        if text.startswith(opening):
            rest = text[1:]
            # A leading apostrophe may not be a quote: 'til, 's Gravenhage.
            return rest.find(closing) == len(rest) - 1 or (closing not in rest and opening != "'")
    return False
