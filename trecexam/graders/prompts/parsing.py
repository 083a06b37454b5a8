"""From what a model wrote to a rating. What cannot be read stays unread: the track's policy decides."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from trecexam.graders.prompts.answer_key import UNANSWERABLE, says_unanswerable, stemmer
from trecexam.graders.prompts.stated import (
    NO_RATING,
    NUMBER,
    alone,
    explicit,
    given,
    in_json,
    objects,
    plain_characters,
    rating_of,
    words,
)
from trecexam.graders.replies import fence_removed, json_value


class Reading(NamedTuple):
    """`status` is "ok" and `rating` is on the prompt's scale, or "unparsed" and None."""

    rating: int | None
    status: str


UNPARSED = Reading(None, "unparsed")
#: The answers that TREC RAG 2024 permits on support, and their ratings.
SUPPORT = (("full_support", 2), ("partial_support", 1), ("no_support", 0))

#: Characters of an answer that can be a label of a prompt, or begin with yes or no.
_LONGEST_LABEL = 1_000
_REFUSES = re.compile(
    r"\W*(?:i\s?(?:am|['\u2019]m)\s(?:\w{1,12}\s)?(?:sorry|unable|not\sable)|sorry|(?:my\s)?apologies|i\sapologi[sz]e"
    r"|(?:unfortunately,?\s)?i\s(?:cannot|can\snot|can['\u2019]?t|could\snot|couldn['\u2019]?t|won['\u2019]?t|will\snot|"
    r"must\sdecline|do\snot|don['\u2019]?t)|as\san\s(?:ai|artificial))\b",
    re.I,
)
#: What a rating is of, before it on the only line.
_ABOUT = re.compile(
    r"\W*+(?:overall|best\s+guess|relevanc[ey]|evaluation|assessment|judg(?:e)?ment|verdict|quality|level|value|result)[\W_]{0,4}?[:=]",
    re.I,
)
_FINAL_SCORE = re.compile(
    r"final[\s_-]{1,4}score[\"'*_`]{0,4}\s{0,20}+(?:(?:is|of)\b|[:=])?[\s:=*_<({\[|\"'`$\\]{0,20}+"
    r"(?=[-+\u2212<>~]?[0-9]|(?:zero|one|two|three)\b)",
    re.I,
)
#: The scores of UMBRELA's steps: intent match, trustworthiness, and the final one.
_STEP = re.compile(r"(?<![^\W_])(?P<step>[MTO])[\"'*_`]{0,4}\s{0,4}[:=][\s*_\"'`]{0,8}+(?=[-+0-9])")
_FINAL_LINE = re.compile(r"[\W_]*+final[\s_-]{1,4}score[\"'*_`]{0,4}\s{0,4}(?:is\b|[:=])[\W_]*+", re.I)

_QUOTES = r"\u201c\u201d\u2018\u2019"
_LEAD = rf"[\s\-\u2013\u2014*_.,:;!?'\"`{_QUOTES}()\[\]{{}}|\u2022#/\\]*+"
_ANSWER = r"(?:answer|label|response|support|rating|judg(?:e)?ment|verdict|option|choice|classification)"
# A label of support, and nothing else but what it is called.
_LABEL = re.compile(
    rf"{_LEAD}(?:(?:(?:the|my|final)\s++)*+(?:{_ANSWER}(?:\s*+\(?[0-9A-C]\)?)?\s*+(?:is\b|[:=.]))?|[0-9A-Ca-c][.:)])?{_LEAD}"
    rf"(?:(?P<kind>full|partial|no)[\s_\-\u2013\u2014]*+support|(?P<adverb>full|partial)(?:y|ly)[\s_-]++supported)"
    rf"[\s\-\u2013\u2014*_.,;!'\"`{_QUOTES}()\[\]{{}}|]*+",
    re.I,
)
_SENTENCE_END = re.compile(r"[.!][*_'\"`]*+\s")
_DENIALS = frozenset((
    "no", "cannot", "without", "lack", "lacks", "lacking", "neither", "nor", "never", "hardly", "barely",
    "scarcely", "less", "far", "fails", "fail", "failed", "if", "unless", "would", "could", "might",
    "impossible", "require", "requires", "required", "instead",
))  # fmt: skip
_RETRACTIONS = frozenset(("actually", "wait", "correction", "hmm"))
#: A rating that is taken back: "4. Hmm, actually 2", "4 -> changed to 3".
_RETRACTED = re.compile(
    r"[0-9][^\n0-9]{0,60}?(?:->|\u2192|\b(?:actually|wait|correction|changed\s+to|revised\s+to|on\s+second\s+thought)\b)"
    r"[^\n0-9]{0,24}[0-9]",
    re.I,
)
#: Lines that begin with 1, 2 ... are a list of reasons: these numbers are no ratings.
_LIST_ITEM = re.compile(r"\s*(?P<number>[0-9]{1,2})[.)]\s")
_NAMED = re.compile(
    r"[\W_]*+(?:(?:the|my|final)\s++)*+(?:answer|verdict|judg(?:e)?ment|decision|label)[\W_]*+(?:is\b|[:=])[\W_]*+",
    re.I,
)
_TEXT_KEYS = frozenset((
    "answer", "label", "support", "supportlabel", "supportlevel", "rating", "verdict", "judgment",
    "judgement", "classification", "result", "response", "finalanswer", "relevant",
))  # fmt: skip
_INNER = re.compile(
    r"\\boxed\s?\{(?:\\text\s?\{)?(?P<box>[^{}]{1,80})\}|<(?P<name>answer|label|verdict|output)>(?P<inner>[^<>]{1,80})</(?P=name)>",
    re.I,
)


def read_rating(
    answer: str, max_rating: int = 5, labels: Mapping[int, str] | None = None, *, cut: bool = False
) -> Reading:
    """Read the rating 0..max_rating that an answer states once.

    "4", "4/5", "Rating: 4" and "4: The answer is mostly relevant" are 4; so is a rating in JSON, in a tag or
    a box, or on a line of its own beside an explanation. An answer that says that the passage does not answer
    ("unanswerable", "no", ...) is 0 (Rubric paper, section 3.2). All else, such as "4-6 weeks", a digit
    before another rating's label, or two ratings, is unparsed.

    Args:
        labels: rating -> what the prompt says of it; an answer may repeat it right after the digit.
        cut: the answer was cut off: it counts where nothing more could make it another rating.
    """
    text, scale = plain_characters(answer), labels or {}
    if cut:
        rating = alone(text, max_rating, scale, cut=True)
        if rating is None and isinstance(value := json_value(text), dict | list):
            rating = in_json(value, max_rating, scale)
        return _reading(rating)
    lines = [line for line in text.splitlines() if words(line)]
    if _REFUSES.match(text):
        own_lines = (alone(line, max_rating, scale, named=True) for line in lines[1:])
        named = {rating for rating in own_lines if rating is not None}
        return _reading(named.pop() if len(named) == 1 else None)
    by_line = [alone(line, max_rating, scale) for line in lines]
    ratings = {rating for rating in by_line if rating is not None}
    named_ratings = [*explicit(text, max_rating, scale)]
    finals = {rating for rating, is_final in named_ratings if is_final}
    if not finals and _RETRACTED.search(text):
        return UNPARSED
    if named_ratings:
        if _is_numbered(lines):
            by_line = []
        named = finals or {rating for rating, _ in named_ratings}
        bare = {rating for rating in (*by_line[:1], *by_line[-1:]) if rating is not None}
        named |= set() if finals else bare
        return _reading(named.pop() if len(named) == 1 else None)
    if len(lines) > 1 and len(ratings) > 1:
        return UNPARSED
    whole = alone(text, max_rating, scale)
    rating = next((each for each in (whole, *by_line[:1], *by_line[-1:]) if each is not None), None)
    if rating is None and len(lines) == 1 and (about := _ABOUT.match(text)):
        rating = alone(text[about.end() :], max_rating, scale)
    if rating is None:
        rating = _labelled(text, scale)
    if rating is None:
        rating = 0 if says_unanswerable(text) or words(text) == ["none"] else given(text, max_rating)
    return _reading(rating)


def _is_numbered(lines: Sequence[str]) -> bool:
    """Return True for lines of which some begin with 1, 2 ..., in that order."""
    numbers = [int(match["number"]) for line in lines if (match := _LIST_ITEM.match(line))]
    return len(numbers) > 1 and numbers == [*range(1, len(numbers) + 1)]


def _reading(rating: int | None) -> Reading:
    return UNPARSED if rating is None or rating == NO_RATING else Reading(rating, "ok")


def _labelled(text: str, labels: Mapping[int, str]) -> int | None:
    """Return the rating whose label is the whole text."""
    if len(text) > _LONGEST_LABEL:
        return None
    said = words(text)
    found = [rating for rating, label in labels.items() if said and said == words(label)]
    return found[0] if len(found) == 1 else None


def read_final_score(answer: str, max_rating: int = 3, *, cut: bool = False) -> Reading:
    """Read the last "final score: N" (UMBRELA, section 3), the O of its steps, else a lone rating."""
    text = plain_characters(answer)
    if cut:
        named = _FINAL_LINE.match(text)
        return read_rating(text[named.end() :] if named else text, max_rating, cut=True)
    numbers = [number for m in _FINAL_SCORE.finditer(text) if (number := NUMBER.match(text, m.end()))]
    if numbers:
        return _reading(rating_of(numbers[-1], max_rating))
    steps = {match["step"] for match in _STEP.finditer(text)}
    if "O" in steps and len(steps) > 1 and "{" not in text:
        # A comma parts a step from the next one.
        parts = (
            re.split(r",|\n", text[match.end() : match.end() + 40], maxsplit=1)[0]
            for match in _STEP.finditer(text)
            if match["step"] == "O"
        )
        overall = {rating_of(number, max_rating) for part in parts if (number := NUMBER.match(part))}
        return _reading(overall.pop() if len(overall) == 1 else None)
    return read_rating(text, max_rating)


def read_yes_no(answer: str) -> Reading:
    """Read 1 for yes (true, correct, relevant) in the first word, 0 for no or what means unanswerable."""
    answer = _said(answer)
    first = words(answer[:_LONGEST_LABEL])
    if says_unanswerable(answer):
        return Reading(0, "ok")
    if first and first[0] in {"yes", "true", "correct", "relevant"}:
        return Reading(1, "ok")
    if first and (first[0] in {"no", "false", "incorrect", "irrelevant"} or first[:2] == ["not", "relevant"]):
        return Reading(0, "ok")
    return UNPARSED


def _said(answer: str) -> str:
    """Return the words of an answer that is named, in JSON, in a tag or in a box; else the answer."""
    text = plain_characters(answer)
    for _, _, value in objects(text):
        members = {re.sub(r"[^a-z]", "", str(key).lower()): each for key, each in value.items()}
        texts = [each for key, each in members.items() if key in _TEXT_KEYS or len(members) == 1]
        if len(texts) == 1 and isinstance(texts[0], str | bool):
            return ("yes" if texts[0] else "no") if isinstance(texts[0], bool) else texts[0]
        return text
    inner = {(match["box"] or match["inner"]).strip() for match in _INNER.finditer(text)}
    text = inner.pop() if len(inner) == 1 else fence_removed(text)
    named = _NAMED.match(text)
    return text[named.end() :] if named else text


def read_answer(answer: str) -> Reading:
    """Read 1 where the passage gave an answer, 0 where there is none or it says that it has none."""
    return Reading(0 if not answer.strip() or says_unanswerable(answer) else 1, "ok")


def read_support(answer: str, *, cut: bool = False) -> Reading:
    """Read 2 for full, 1 for partial and 0 for no support, however the words are joined and quoted.

    A label on its own line, or the answer's first sentence, counts, whatever is said elsewhere.
    Else an answer that names several labels, or denies one ("not full support"), is unparsed. An answer that
    was cut off counts where it is a label and nothing else.
    """
    answer = _said(answer)
    first = _SENTENCE_END.split(answer.strip(), maxsplit=1)[0]
    parts = (answer,) if cut else (first, *answer.splitlines())
    labels = {
        (match["kind"] or match["adverb"]).lower() for part in parts if (match := _LABEL.fullmatch(part))
    }
    said = words(answer.replace("_", " "))
    if not cut and ("?" in first or not _RETRACTIONS.isdisjoint(said)):
        return UNPARSED
    if labels or cut:
        return Reading(dict(SUPPORT)[f"{labels.pop()}_support"], "ok") if len(labels) == 1 else UNPARSED
    named = {
        f"{kind}_support"
        for kind, support in pairwise(said)
        if support == "support" and kind in {"full", "partial", "no"}
    }
    denied = "not" in said or "n't" in answer.replace("\u2019", "'")
    if len(named) != 1 or denied or (named != {"no_support"} and not _DENIALS.isdisjoint(said)):
        return UNPARSED
    return Reading(dict(SUPPORT)[named.pop()], "ok")


@cache
def _expressions() -> tuple[str, ...]:
    # The workbench stems the whole text as if it were one word.
    return tuple(map(stemmer(), UNANSWERABLE))


def _answered(answer: str) -> bool:
    from rapidfuzz.fuzz import ratio

    stemmed = stemmer()(answer.lower())
    if answer in UNANSWERABLE or not stemmed:
        return False
    # Whole percents: fuzzywuzzy rounds.
    return not any(round(ratio(stemmed, expression)) > 80 for expression in _expressions())


def read_as_workbench(parser: str, answer: str, max_rating: int) -> Reading:
    """Read a self-rating ("rating"), a direct answer ("yes_no") or an extracted one ("answer").

    The Rubric workbench's released code reads otherwise than its paper. Self-ratings: an expression of
    unanswerability becomes 1 and every other text 0, "5: The answer ..." too
    (`SelfRaterStrict.check_answer_rating`, whose test of `check_unanswer` is the wrong way round). Direct
    prompts: whatever is not "yes", "correct" or "true" becomes 0 (`DirectGradingPrompt.check_answer`).
    """
    if parser == "rating":
        match = re.fullmatch(r"[^\w]*([0-9])[^\w]*", answer)
        if match and int(match[1]) <= 5:
            return Reading(int(match[1]) if int(match[1]) <= max_rating else 0, "ok")
        return Reading(0 if _answered(answer) else 1, "ok")
    relevant = parser == "answer" or answer.lower() in {"yes", "correct", "true"}
    return Reading(int(_answered(answer) and relevant), "ok")
