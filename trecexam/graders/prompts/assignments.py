"""Labels of items that a model was asked about together: read from its list, and as they are stored."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

from trecexam.graders.base import MOST_READ
from trecexam.graders.prompts.parsing import UNPARSED, Reading

#: The labels of nuggetizer and their ratings, which are those of its assignments (`converters.nuggets`).
ASSIGNMENTS = (("support", 5), ("partial_support", 3), ("not_support", 0))
#: Items that one prompt asks about, in nuggetizer.
GROUP = 10
_LIST = re.compile(r"\[([^\[\]]*)\]")
_MARKS = " \t\r\n\"'`*.\u201c\u201d\u2018\u2019"
_BULLET = re.compile(r"\s*(?:(\d{1,3})[.):]|[-*\u2022])\s+")


def as_label(text: str) -> str:
    """A label as prompts spell it: without quotes, in lower case, words joined by `_`."""
    return re.sub(r"[\s_-]+", "_", text.strip(_MARKS).casefold())


def read_labels(answer: str, number: int, labels: Collection[str]) -> list[str] | None:
    """The label of each of `number` items, as the model wrote them; None where that is not what it wrote.

    Read is the only list in brackets, Python's or JSON's, with whatever stands around it; where there are no
    brackets, the whole answer, with commas between labels or a line for each, numbered or not. One thing in
    it that is no label, one too few or too many, and nothing is read: which label is whose would be a guess.

    Args:
        labels: those that there are.
    """
    # What a model thinks may name labels, too.
    answer = answer.rpartition("</think>")[2][:MOST_READ].strip()
    lists = _LIST.findall(answer)
    if len(lists) > 1 or (not lists and "[" in answer):
        return None
    parts = [part.strip(_MARKS) for part in lists[0].split(",")] if lists else _bare(answer)
    if lists and len(parts) > 1 and not parts[-1]:
        parts.pop()
    known_labels = {as_label(label) for label in labels}
    read = len(parts) == number and all(as_label(part) in known_labels for part in parts)
    return parts if read else None


def _bare(answer: str) -> list[str]:
    """The parts of a list without brackets; none where its numbers are not 1, 2, 3 ..."""
    lines = [line for line in answer.splitlines() if line.strip()]
    if len(lines) < 2 or any("," in line.rstrip(" ,") for line in lines):
        bullet = _BULLET.match(answer)
        return [part.strip(_MARKS) for part in answer[bullet.end() if bullet else 0 :].split(",")]
    bullets = [_BULLET.match(line) for line in lines]
    numbers = [int(bullet[1]) for bullet in bullets if bullet and bullet[1]]
    if numbers and numbers != [*range(1, len(lines) + 1)]:
        return []
    return [
        line[bullet.end() if bullet else 0 :].strip(_MARKS + ",")
        for line, bullet in zip(lines, bullets, strict=True)
    ]


def with_place(label: str, position: int, number: int) -> str:
    """What is stored of a cell: its label, and which one of how many it was in the model's list, from 1."""
    return json.dumps({"label": label, "place": position, "of": number}, ensure_ascii=False)


def read_assignment(stored: str, ratings: Mapping[str, int]) -> Reading:
    """The rating of a label, as `with_place` stores it or bare; all else is unparsed.

    Args:
        ratings: of labels, however these are spelled.
    """
    try:
        row = json.loads(stored)
    except (ValueError, RecursionError):
        row = None
    label = row["label"] if isinstance(row, dict) and row.keys() == {"label", "place", "of"} else stored
    rating_of_label = {as_label(each): rating for each, rating in ratings.items()}
    rating = rating_of_label.get(as_label(label)) if isinstance(label, str) else None
    return UNPARSED if rating is None else Reading(rating, "ok")
