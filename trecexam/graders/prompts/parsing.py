"""From what a model wrote to a rating. What cannot be read stays unread: the track's policy decides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from converters.records import Item
from trecexam.graders.prompts.answer_key import is_correct
from trecexam.graders.prompts.wording import says_unanswerable


class Reading(NamedTuple):
    """`status` is "ok" and `rating` is on the prompt's scale, or "unparsed" and None."""

    rating: int | None
    status: str


UNPARSED = Reading(None, "unparsed")

# Dashes and quotation marks of all kinds. Currency, signs and comparisons are left out: "$4" and "<4" are
# no ratings.
_DASH = r"\-\u2013\u2014"
_MARKS = rf"\s{_DASH}*_.,:;!?'\"`\u201c\u201d\u2018\u2019()\[\]{{}}|"
# Possessive quantifiers (*+): what was matched is never given back, so that no answer takes long to read.
_LEAD = rf"[{_MARKS}\u2022#/\\]*+"
_NAME = r"(?:(?:the|my|final|overall|self)[\s-]++)*+(?:self-?rating|rating|score|grade)\s*+(?:is\b|[:=])?"
_RATING = re.compile(rf"{_LEAD}(?:{_NAME})?{_LEAD}(?P<digit>[0-9])(?P<rest>(?![^\W_]).*)", re.I | re.S)
#: After the digit: nothing but punctuation, or a mark that sets off its label.
_END = re.compile(rf"[{_MARKS}]*")
_SET_OFF = re.compile(rf"[*_'\"`)\]}}]*(?:[:.)\]]|\s+[{_DASH}:=])[*_'\"`]*\s+(?=[^\W\d])")
_SCORE = re.compile(r"final\s++score\s*+[:=]?\s*+\**+\s*+([0-9])(?![\w.,/%])", re.I)


def read_rating(answer: str, max_rating: int = 5, labels: Mapping[int, str] | None = None) -> Reading:
    """A digit 0..max_rating, alone or led by punctuation or followed by its label; see the module's tests.

    "4", "4.", "- 4:", "Rating: 4" and "4: The answer is mostly relevant" are 4. An answer that says that the
    passage does not answer ("unanswerable", "no", ...) is 0 (Rubric paper, section 3.2). All else, such as
    "4-6 weeks", is unparsed.

    Args:
        labels: rating -> what the prompt says of it; an answer may repeat it right after the digit.
    """
    match = _RATING.fullmatch(answer)
    if match and int(match["digit"]) <= max_rating:
        rating, rest = int(match["digit"]), match["rest"]
        if _END.fullmatch(rest) or _is_label(rest, (labels or {}).get(rating)):
            return Reading(rating, "ok")
    return Reading(0, "ok") if says_unanswerable(answer) else UNPARSED


def _is_label(rest: str, label: str | None) -> bool:
    """Whether what follows a digit is what the prompt says of that rating, or begins so, or is a part."""
    if label is None:
        return _SET_OFF.match(rest) is not None
    said, scale = _words(rest), _words(label)
    if not said:
        return False
    if _SET_OFF.match(rest):
        return said[0] == scale[0] or f" {' '.join(said)} " in f" {' '.join(scale)} "
    # Nothing sets "4 The answer is mostly ..." off: it takes two words of the label to tell.
    return len(said) >= 2 and said[:2] == scale[:2]


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def read_yes_no(answer: str) -> Reading:
    """1 for yes (true, correct, relevant) in the first word, 0 for no or what means unanswerable."""
    words = re.findall(r"[^\W_]+", answer.casefold())
    if says_unanswerable(answer):
        return Reading(0, "ok")
    if words and words[0] in {"yes", "true", "correct", "relevant"}:
        return Reading(1, "ok")
    if words and words[0] in {"no", "false", "incorrect", "irrelevant"}:
        return Reading(0, "ok")
    return UNPARSED


def read_answer(answer: str) -> Reading:
    """1 where the passage gave an answer, 0 where there is none or it says that it has none."""
    return Reading(0 if not answer.strip() or says_unanswerable(answer) else 1, "ok")


def read_key(answer: str, item: Item) -> Reading:
    """1 where the answer is right by the item's answer key, else 0."""
    return Reading(int(is_correct(answer, item.gold_answers)), "ok")


def read_final_score(answer: str, max_rating: int = 3) -> Reading:
    """The last "final score: N" (UMBRELA, section 3), else a lone rating."""
    scores = [int(score) for score in _SCORE.findall(answer)]
    if scores:
        return Reading(scores[-1], "ok") if scores[-1] <= max_rating else UNPARSED
    return read_rating(answer, max_rating)
