"""Ratings and labels in replies. Other replies stay unread, and the policy of the track decides."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import pairwise

from trecexam.graders.prompts.answer_key import UNANSWERABLE, says_unanswerable, stemmer
from trecexam.graders.prompts.stated import (
    LEAD,
    NO_RATING,
    NUMBER,
    agreed,
    alone,
    explicit,
    given,
    in_json,
    marked,
    objects,
    plain_characters,
    rating_of,
    words,
)
from trecexam.graders.replies import fence_removed, json_value

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

_ANSWER = r"(?:answer|label|response|support|rating|judg(?:e)?ment|verdict|option|choice|classification)"
# A label of support, and nothing else but what it is called.
_LABEL = re.compile(
    rf"{LEAD}(?:(?:(?:the|my|final)\s++)*+(?:{_ANSWER}(?:\s*+\(?[0-9A-C]\)?)?\s*+(?:is\b|[:=.]))?|[0-9A-Ca-c][.:)])?{LEAD}"
    rf"(?:(?P<kind>full|partial|no)[\s_\-\u2013\u2014]*+support|(?P<adverb>full|partial)(?:y|ly)[\s_-]++supported)"
    rf"[\s\-\u2013\u2014*_.,;!'\"`\u201c\u201d\u2018\u2019()\[\]{{}}|]*+",
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


def read_rating(
    answer: str, max_rating: int = 5, labels: Mapping[int, str] | None = None, *, cut: bool = False
) -> int | None:
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
        return _stated(rating)
    lines = [line for line in text.splitlines() if words(line)]
    if _REFUSES.match(text):
        return _stated(agreed(alone(line, max_rating, scale, named=True) for line in lines[1:]))
    by_line = [alone(line, max_rating, scale) for line in lines]
    ratings = {rating for rating in by_line if rating is not None}
    named_ratings = [*explicit(text, max_rating, scale)]
    finals = {rating for rating, is_final in named_ratings if is_final}
    if not finals and _RETRACTED.search(text):
        return None
    if named_ratings:
        bare = [] if _is_numbered(lines) else [*by_line[:1], *by_line[-1:]]
        return _stated(agreed(finals or [*(rating for rating, _ in named_ratings), *bare]))
    if len(ratings) > 1:
        return None
    whole = alone(text, max_rating, scale)
    rating = next((each for each in (whole, *by_line[:1], *by_line[-1:]) if each is not None), None)
    if rating is None and len(lines) == 1 and (about := _ABOUT.match(text)):
        rating = alone(text[about.end() :], max_rating, scale)
    if rating is None:
        rating = _labelled(text, scale)
    if rating is None:
        rating = 0 if says_unanswerable(text) or words(text) == ["none"] else given(text, max_rating)
    return _stated(rating)


def _is_numbered(lines: Sequence[str]) -> bool:
    """Return True for lines of which some begin with 1, 2 ..., in that order."""
    numbers = [int(match["number"]) for line in lines if (match := _LIST_ITEM.match(line))]
    return len(numbers) > 1 and numbers == [*range(1, len(numbers) + 1)]


def _stated(rating: int | None) -> int | None:
    return None if rating == NO_RATING else rating


def _labelled(text: str, labels: Mapping[int, str]) -> int | None:
    """Return the rating whose label is the whole text."""
    if len(text) > _LONGEST_LABEL:
        return None
    said = words(text)
    found = [rating for rating, label in labels.items() if said and said == words(label)]
    return found[0] if len(found) == 1 else None


def read_final_score(answer: str, max_rating: int = 3, *, cut: bool = False) -> int | None:
    """Read the last "final score: N" (UMBRELA, section 3), the O of its steps, else a lone rating."""
    text = plain_characters(answer)
    if cut:
        named = _FINAL_LINE.match(text)
        return read_rating(text[named.end() :] if named else text, max_rating, cut=True)
    numbers = [number for m in _FINAL_SCORE.finditer(text) if (number := NUMBER.match(text, m.end()))]
    if numbers:
        return _stated(rating_of(numbers[-1], max_rating))
    steps = {match["step"] for match in _STEP.finditer(text)}
    if "O" in steps and len(steps) > 1 and "{" not in text:
        # A comma parts a step from the next one.
        parts = (
            re.split(r",|\n", text[match.end() : match.end() + 40], maxsplit=1)[0]
            for match in _STEP.finditer(text)
            if match["step"] == "O"
        )
        overall = {rating_of(number, max_rating) for part in parts if (number := NUMBER.match(part))}
        return _stated(agreed(overall))
    return read_rating(text, max_rating)


def read_yes_no(answer: str) -> int | None:
    """Read 1 for yes (true, correct, relevant) in the first word, 0 for no or what means unanswerable."""
    answer = _said(answer)
    first = words(answer[:_LONGEST_LABEL])
    if says_unanswerable(answer):
        return 0
    if first and first[0] in {"yes", "true", "correct", "relevant"}:
        return 1
    if first and (first[0] in {"no", "false", "incorrect", "irrelevant"} or first[:2] == ["not", "relevant"]):
        return 0
    return None


def _said(answer: str) -> str:
    """Return the words of an answer that is named, in JSON, in a tag or in a box; else the answer."""
    text = plain_characters(answer)
    for _, _, value in objects(text):
        members = {re.sub(r"[^a-z]", "", str(key).lower()): each for key, each in value.items()}
        texts = [each for key, each in members.items() if key in _TEXT_KEYS or len(members) == 1]
        if len(texts) == 1 and isinstance(texts[0], str | bool):
            return ("yes" if texts[0] else "no") if isinstance(texts[0], bool) else texts[0]
        return text
    inner = {*marked(text)}
    text = inner.pop() if len(inner) == 1 else fence_removed(text)
    named = _NAMED.match(text)
    return text[named.end() :] if named else text


def read_answer(answer: str) -> int:
    """Read 1 where the passage gave an answer, 0 where there is none or it says that it has none."""
    return 0 if not answer.strip() or says_unanswerable(answer) else 1


def read_support(answer: str, *, cut: bool = False) -> int | None:
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
        return None
    if labels or cut:
        return dict(SUPPORT)[f"{labels.pop()}_support"] if len(labels) == 1 else None
    named = {
        f"{kind}_support"
        for kind, support in pairwise(said)
        if support == "support" and kind in {"full", "partial", "no"}
    }
    denied = "not" in said or "n't" in answer.replace("\u2019", "'")
    if len(named) != 1 or denied or (named != {"no_support"} and not _DENIALS.isdisjoint(said)):
        return None
    return dict(SUPPORT)[named.pop()]


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


def read_as_workbench(parser: str, answer: str, max_rating: int) -> int:
    """Read a self-rating ("rating"), a direct answer ("yes_no") or an extracted one ("answer").

    The Rubric workbench's released code reads otherwise than its paper. Self-ratings: an expression of
    unanswerability becomes 1 and every other text 0, "5: The answer ..." too
    (`SelfRaterStrict.check_answer_rating`, whose test of `check_unanswer` is the wrong way round). Direct
    prompts: whatever is not "yes", "correct" or "true" becomes 0 (`DirectGradingPrompt.check_answer`).
    """
    if parser == "rating":
        match = re.fullmatch(r"[^\w]*([0-9])[^\w]*", answer)
        if match and int(match[1]) <= 5:
            return int(match[1]) if int(match[1]) <= max_rating else 0
        return 0 if _answered(answer) else 1
    relevant = parser == "answer" or answer.lower() in {"yes", "correct", "true"}
    return int(_answered(answer) and relevant)


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


def read_assignment(answer: str, ratings: Mapping[str, int], *, cut: bool = False) -> int | None:
    """Read the rating of a label, which is bare or a list of one."""
    listed = read_labels(answer, 1, ratings, cut=cut)
    rating_of_label = {as_label(each): rating for each, rating in ratings.items()}
    return rating_of_label[as_label(listed[0])] if listed else None
