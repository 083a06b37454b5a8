"""From what a model wrote to a rating. What cannot be read stays unread: the track's policy decides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from converters.records import Item
from trecexam.graders.prompts.answer_key import is_correct
from trecexam.graders.prompts.wording import says_unanswerable


class Reading(NamedTuple):
    """`status` is "ok" and `rating` is on the prompt's scale, or "unparsed" and None."""

    rating: int | None
    status: str


UNPARSED = Reading(None, "unparsed")
#: The answers that TREC RAG 2024 permits on support, and their ratings.
SUPPORT = (("full_support", 2), ("partial_support", 1), ("no_support", 0))

# Dashes and quotation marks of all kinds. Currency, signs and comparisons are left out: "$4" and "<4" are
# no ratings.
_DASH = r"\-\u2013\u2014"
_MARKS = rf"\s{_DASH}*_.,:;!?'\"`\u201c\u201d\u2018\u2019()\[\]{{}}|"
# Possessive quantifiers (*+): what was matched is never given back, so that no answer takes long to read.
_LEAD = rf"[{_MARKS}\u2022#/\\]*+"
_NAME = r"(?:(?:the|my|final|overall|self)[\s-]++)*+(?:self-?rating|rating|score|grade)\s*+(?:is\b|[:=])?"
_RATING = re.compile(rf"{_LEAD}(?:{_NAME})?{_LEAD}(?P<digit>[0-9])(?P<rest>(?![^\W_]).*)", re.I | re.S)
#: After the digit: nothing but punctuation, or a mark that sets off its label.
_END = re.compile(rf"[{_MARKS}]*+")
_SET_OFF = re.compile(rf"[*_'\"`)\]}}]*(?:[:.)\]]|\s+[{_DASH}:=])[*_'\"`]*\s+(?=[^\W\d])")
_SCORE = re.compile(r"final\s++score[\s:=*_<(\[\"']*+([0-9])(?![^\W_]|[.,/]\d|%)", re.I)

# A label of support, and nothing else but what it is called.
_LABEL = re.compile(
    rf"{_LEAD}(?:(?:the|my|final)\s++)*+(?:(?:answer|label|response|support)\s*+(?:is\b|:))?{_LEAD}"
    rf"(full|partial|no)[\s_{_DASH}]*+support[\s{_DASH}*_.,;!'\"`\u201c\u201d\u2018\u2019()\[\]{{}}|]*+",
    re.I,
)
_SENTENCE_END = re.compile(r"[.!][*_'\"`]*+\s")
_DENIALS = frozenset(("no", "cannot", "without", "lack", "lacks", "lacking", "neither", "nor", "never"))


def read_rating(answer: str, max_rating: int = 5, labels: Mapping[int, str] | None = None) -> Reading:
    """A digit 0..max_rating, alone or led by punctuation or followed by its label; see the module's tests.

    "4", "4.", "- 4:", "Rating: 4" and "4: The answer is mostly relevant" are 4; so is a rating on a line of
    its own before an explanation. An answer that says that the passage does not answer ("unanswerable",
    "no", ...) is 0 (Rubric paper, section 3.2). All else, such as "4-6 weeks", a digit before another
    rating's label, or several ratings, is unparsed.

    Args:
        labels: rating -> what the prompt says of it; an answer may repeat it right after the digit.
    """
    rating = _rating(answer, max_rating, labels or {})
    lines = [line for line in answer.splitlines() if _words(line)]
    if len(lines) > 1:
        ratings = [_rating(line, max_rating, labels or {}) for line in lines]
        rating = ratings[0] if rating is None else rating
        if any(other is not None for other in ratings[1:]) and ratings[0] is not None:
            rating = None
    if rating is not None:
        return Reading(rating, "ok")
    return Reading(0, "ok") if says_unanswerable(answer) else UNPARSED


def _rating(text: str, max_rating: int, labels: Mapping[int, str]) -> int | None:
    match = _RATING.fullmatch(text)
    if match is None or int(match["digit"]) > max_rating:
        return None
    rating, rest = int(match["digit"]), match["rest"]
    if _END.fullmatch(rest):
        return rating
    if not labels:
        return rating if _SET_OFF.match(rest) else None
    return rating if _is_label(rest, rating, labels) else None


def _is_label(rest: str, rating: int, labels: Mapping[int, str]) -> bool:
    """Whether what follows a digit is what the prompt says of that rating: a part of it, or its beginning.

    A beginning that other ratings' labels share ("The answer is") tells nothing of what comes after it.
    """
    following, label_words = _words(rest), _words(labels.get(rating, ""))
    if not following or not label_words:
        return False
    if f" {' '.join(following)} " in f" {' '.join(label_words)} ":
        # Nothing sets "4 weeks" off from its digit: there it takes two words of the label to tell.
        return len(following) >= 2 or _SET_OFF.match(rest) is not None
    shared = _in_common(following, label_words)
    return shared >= 2 and all(
        shared > _in_common(following, _words(text)) for other, text in labels.items() if other != rating
    )


def _in_common(first: list[str], second: list[str]) -> int:
    """How many words both begin with."""
    return next(
        (index for index, (left, right) in enumerate(zip(first, second, strict=False)) if left != right),
        min(len(first), len(second)),
    )


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def read_yes_no(answer: str) -> Reading:
    """1 for yes (true, correct, relevant) in the first word, 0 for no or what means unanswerable."""
    words = _words(answer)
    if says_unanswerable(answer):
        return Reading(0, "ok")
    if words and words[0] in {"yes", "true", "correct", "relevant"}:
        return Reading(1, "ok")
    if words and (words[0] in {"no", "false", "incorrect", "irrelevant"} or words[:2] == ["not", "relevant"]):
        return Reading(0, "ok")
    return UNPARSED


def read_answer(answer: str) -> Reading:
    """1 where the passage gave an answer, 0 where there is none or it says that it has none."""
    return Reading(0 if not answer.strip() or says_unanswerable(answer) else 1, "ok")


def read_key(answer: str, item: Item) -> Reading:
    """1 where the answer is right by the item's answer key, else 0."""
    return Reading(int(is_correct(answer, item.gold_answers)), "ok")


def read_support(answer: str) -> Reading:
    """2 for full, 1 for partial and 0 for no support, however the words are joined and quoted.

    A label on its own line, or the answer's first sentence, counts, whatever is said elsewhere.
    Else an answer that names several labels, or denies one ("not full support"), is unparsed.
    """
    first = _SENTENCE_END.split(answer.strip(), 1)[0]
    alone = {match[1].lower() for part in (first, *answer.splitlines()) if (match := _LABEL.fullmatch(part))}
    if alone:
        return Reading(dict(SUPPORT)[f"{alone.pop()}_support"], "ok") if len(alone) == 1 else UNPARSED
    words = _words(answer.replace("_", " "))
    named = {
        f"{kind}_support"
        for kind, support in pairwise(words)
        if support == "support" and kind in {"full", "partial", "no"}
    }
    denied = "not" in words or "n't" in answer.replace("\u2019", "'")
    if len(named) != 1 or denied or (named != {"no_support"} and not _DENIALS.isdisjoint(words)):
        return UNPARSED
    return Reading(dict(SUPPORT)[named.pop()], "ok")


def read_final_score(answer: str, max_rating: int = 3) -> Reading:
    """The last "final score: N" (UMBRELA, section 3), else a lone rating."""
    scores = [int(score) for score in _SCORE.findall(answer)]
    if scores:
        return Reading(scores[-1], "ok") if scores[-1] <= max_rating else UNPARSED
    return read_rating(answer, max_rating)
