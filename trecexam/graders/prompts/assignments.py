"""Labels of items that a model was asked about together: read from its list, and as they are stored."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

from trecexam.graders.prompts.parsing import UNPARSED, Reading
from trecexam.graders.prompts.stated import plain_characters
from trecexam.graders.replies import fence_removed, json_value

#: The labels of nuggetizer and their ratings, which are those of its assignments (`converters.nuggets`).
ASSIGNMENTS = (("support", 5), ("partial_support", 3), ("not_support", 0))
#: Items that one prompt asks about, in nuggetizer.
GROUP = 10
_LIST = re.compile(r"\[([^\[\]]*)\]")
_MARKS = " \t\r\n\"'`*.\u201c\u201d\u2018\u2019"
_BULLET = re.compile(r"\s*(?:(\d{1,3})[.):]|[-*\u2022])\s+")
#: What a list is called before it.
_HEADING = re.compile(r"\A\s*(?:the\s+|my\s+)?(?:labels?|answers?|list|output|assignments?)\s*:\s*", re.I)
#: A label behind what it is of: "1. Cats eat fish: support".
_BEHIND = re.compile(r"[^\n]*(?:[:\u2192=|]|-{1,2}>|\s[-\u2013\u2014]\s)\s*([^\n:\u2192=|>]{1,40})")
_LABEL_KEYS = ("label", "assignment", "support", "rating", "answer")


def as_label(text: str) -> str:
    """Return a label as prompts spell it: without quotes, in lower case, words joined by `_`."""
    return re.sub(r"[\s_-]+", "_", text.strip(_MARKS).casefold())


def read_labels(answer: str, number: int, labels: Collection[str], *, cut: bool = False) -> list[str] | None:
    """Read the label of each of `number` items, as the model wrote them; None for other texts.

    Read is the only list of labels in brackets, Python's or JSON's, with whatever stands around it; where
    there are no brackets, the whole answer, with commas between labels or a line for each, numbered or not,
    with or without its item. One thing in the list that is no label, one too few or too many, or another
    list, and nothing is read: which label is whose would be a guess.

    Args:
        labels: those that there are.
        cut: the answer was cut off: it counts where it is a whole list and nothing else.
    """
    answer = _HEADING.sub("", plain_characters(answer), count=1)
    known_labels = {as_label(label) for label in labels}
    if cut and not fence_removed(answer).strip().endswith(("]", "}")):
        return None
    found = [_parts(listed) for listed in _LIST.findall(answer)]
    found = [parts for parts in found if any(as_label(part) in known_labels for part in parts)]
    if not found:
        found = [_of_json(answer)] if "[" in answer or "{" in answer else [_bare(answer, known_labels)]
    parts = found[0]
    if any([*map(as_label, other)] != [*map(as_label, parts)] for other in found[1:]):
        return None
    read = len(parts) == number and all(as_label(part) in known_labels for part in parts)
    return parts if read else None


def _parts(listed: str) -> list[str]:
    parts = [part.strip(_MARKS) for part in listed.split(",")]
    return parts[:-1] if len(parts) > 1 and not parts[-1] else parts


def _of_json(answer: str) -> list[str]:
    """Return the labels of JSON: a list of objects with a label each, or an object with numbers as keys."""
    value = json_value(answer)
    if (
        isinstance(value, dict)
        and len(value) == 1
        and isinstance(member := next(iter(value.values())), list | dict)
    ):
        value = member
    if isinstance(value, dict) and [*value] == [str(number) for number in range(1, len(value) + 1)]:
        value = [{"label": label} for label in value.values()]
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        return []
    of_each = [[each[key] for key in _LABEL_KEYS if isinstance(each.get(key), str)] for each in value]
    return [texts[0] for texts in of_each] if all(len(texts) == 1 for texts in of_each) else []


def _bare(answer: str, labels: Collection[str]) -> list[str]:
    """Return the parts of a list without brackets; none where its numbers are not 1, 2, 3 ..."""
    lines = [line for line in answer.splitlines() if line.strip()]
    if len(lines) < 2 or any("," in line.rstrip(" ,") for line in lines):
        bullet = _BULLET.match(answer)
        return [part.strip(_MARKS) for part in answer[bullet.end() if bullet else 0 :].split(",")]
    bullets = [_BULLET.match(line) for line in lines]
    numbers = [int(bullet[1]) for bullet in bullets if bullet and bullet[1]]
    if numbers and numbers != [*range(1, len(lines) + 1)]:
        return []
    parts = [
        line[bullet.end() if bullet else 0 :].strip(_MARKS + ",")
        for line, bullet in zip(lines, bullets, strict=True)
    ]
    if all(bullets) and not any(as_label(part) in labels for part in parts):
        # The items come with their labels, in their order.
        behind = [_BEHIND.fullmatch(part) for part in parts]
        parts = [match[1].strip(_MARKS) if match else "" for match in behind]
    return parts


def with_place(label: str, position: int, number: int) -> str:
    """Return what is stored of a cell: its label, and its place, from 1, in the model's list of so many."""
    return json.dumps({"label": label, "place": position, "of": number}, ensure_ascii=False)


def read_assignment(stored: str, ratings: Mapping[str, int], *, cut: bool = False) -> Reading:
    """Read the rating of a label: as `with_place` stores it, bare, or as a list of one."""
    row = json_value(stored)
    is_stored = isinstance(row, dict) and row.keys() == {"label", "place", "of"}
    listed = [row["label"]] if is_stored else read_labels(stored, 1, ratings, cut=cut)
    rating_of_label = {as_label(each): rating for each, rating in ratings.items()}
    label = listed[0] if listed else None
    rating = rating_of_label.get(as_label(label)) if isinstance(label, str) else None
    return UNPARSED if rating is None else Reading(rating, "ok")
