"""Ratings and labels in replies. Other replies stay unread, and the policy of the track decides."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from itertools import pairwise

from trecexam.graders.prompts.answer_key import UNANSWERABLE, says_unanswerable, stemmer
from trecexam.graders.prompts.stated import (
    MEMBER,
    NO_RATING,
    agreed,
    alone,
    given,
    held,
    in_prose,
    plain_characters,
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
    r"\A\W*+(?:overall|best\s+guess|relevanc[ey]|evaluation|assessment|judg(?:e)?ment|verdict|quality|level|value|result)"
    r"[\W_]{0,4}?[:=](?=\W*+(?:[0-9]|zero|one|two|three|four|five))",
    re.I,
)
# A label of support, and nothing else but what it is called.
_LABEL = re.compile(
    r"(?:(?:the|my|final|answer|label|response|support|rating|judge?ment|verdict|option|choice|classification|is|"
    r"[0-9abc]) )*+(?:(full|partial|no) ?support|(full|partial)(?:y|ly) supported)"
)
_FINAL_SCORE = re.compile(r"final[\s_-]+score")
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
    r"\A[\W_]*+(?:(?:the|my|final)\s++)*+(?:answer|verdict|judge?ment|decision|label)[\W_]{0,4}?(?:is\b|[:=])",
    re.I,
)
_ADVERBS = {"fully": "full", "partially": "partial"}
_YES = frozenset({"yes", "true", "correct", "relevant"})
_NO = frozenset({"no", "false", "incorrect", "irrelevant"})
#: The labels of nuggetizer and their ratings, which are those of its assignments (`converters.nuggets`).
ASSIGNMENTS = (("support", 5), ("partial_support", 3), ("not_support", 0))
#: Items that one prompt asks about, in nuggetizer.
GROUP = 10
_LIST = re.compile(r"\[([^\[\]]*)\]")
_MARKS = " \t\r\n\"'`*.\u201c\u201d\u2018\u2019"
#: What a list is called before it.
_HEADING = re.compile(r"\A\s*(?:the\s+|my\s+)?(?:labels?|answers?|list|output|assignments?)\s*:\s*", re.I)
#: A label in a list without brackets; behind what it is of: "1. Cats eat fish: support".
_LISTED = re.compile(
    r"(?:(?:(?P<number>\d{1,3})[.):]|[-*\u2022])\s+(?P<item>[^\n]*(?:[:\u2192=|]|-{1,2}>|\s[-\u2013\u2014]\s))?)?"
    r"\s*(?P<label>[^\n:\u2192=|>]{1,40})"
)
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
    rating = _rating(plain_characters(answer), max_rating, labels or {}, cut=cut)
    return None if rating == NO_RATING else rating


def _rating(text: str, max_rating: int, labels: Mapping[int, str], *, cut: bool) -> int | None:
    """Return the rating that a text states, or `NO_RATING`; None where it states none."""
    values, prose = held(text)
    named = [(name, alone(value, max_rating, labels)[1]) for name, value in values]
    # "<answer>3.5 or so</answer>" is no rating, whatever else is said.
    unclear = [
        rating is None and value[:1].isdecimal()
        for (_, value), (_, rating) in zip(values, named, strict=True)
    ]
    if any(unclear):
        return NO_RATING
    if cut:
        rating = agreed(rating for _, rating in named) if json_value(text) is not None else None
        return alone(text, max_rating, labels, cut=True)[1] if rating is None else rating
    lines = [line for line in text.splitlines() if words(line)]
    numbers = [int(match["number"]) for line in lines if (match := _LIST_ITEM.match(line))]
    is_list = len(numbers) > 1 and numbers == [*range(1, len(numbers) + 1)]
    if len(lines) == 1:
        lines = [_ABOUT.sub("", lines[0], count=1)]
    by_line = [alone(line, max_rating, labels) for line in lines]
    if _REFUSES.match(text):
        return agreed(rating for name, rating in by_line[1:] if name)
    named += [*in_prose(prose, max_rating), *((name, rating) for name, rating in by_line if name)]
    finals = [rating for name, rating in named if "final" in name and rating is not None]
    if not finals and _RETRACTED.search(text):
        return None
    bare = [rating for _, rating in (*by_line[:1], *by_line[-1:])]
    if any(rating is not None for _, rating in named):
        return agreed(finals or [*(rating for _, rating in named), *([] if is_list else bare)])
    if agreed(rating for _, rating in by_line) == NO_RATING:
        return None
    said = words(text[:_LONGEST_LABEL])
    rating = agreed([alone(text, max_rating, labels)[1], *bare])
    if rating is None:
        rating = agreed(rating for rating, label in labels.items() if said and said == words(label))
    if rating is None:
        rating = 0 if says_unanswerable(text) or said == ["none"] else given(text, max_rating)
    return rating


def read_final_score(answer: str, max_rating: int = 3, *, cut: bool = False) -> int | None:
    """Read the last "final score: N" (UMBRELA, section 3), the O of its steps, else a lone rating."""
    text = re.sub(r"(?i)\b(final score) of\b", r"\1:", plain_characters(answer))
    scores = [rating for name, rating in in_prose(text, max_rating) if _FINAL_SCORE.search(name)]
    if scores and not cut:
        return None if scores[-1] == NO_RATING else scores[-1]
    return read_rating(text, max_rating, cut=cut)


def _read_text(answer: str, read: Callable[[str], int | None]) -> int | None:
    """Read what stands in JSON, tags and boxes; where there is nothing to read, the other text."""
    values, prose = held(plain_characters(answer))
    texts = [value for _, value in values if re.search(r"[^\W\d_]", value)]
    rating = agreed(map(read, texts or [fence_removed(prose)]))
    return None if rating == NO_RATING else rating


def read_yes_no(answer: str) -> int | None:
    """Read 1 for yes (true, correct, relevant) in the first word, 0 for no or what means unanswerable."""
    return _read_text(answer, _yes_no)


def _yes_no(text: str) -> int | None:
    text = _NAMED.sub("", text)
    first = words(text[:_LONGEST_LABEL])[:2]
    if says_unanswerable(text) or first == ["not", "relevant"] or not _NO.isdisjoint(first[:1]):
        return 0
    return None if _YES.isdisjoint(first[:1]) else 1


def read_answer(answer: str) -> int:
    """Read 1 where the passage gave an answer, 0 where there is none or it says that it has none."""
    return 0 if not answer.strip() or says_unanswerable(answer) else 1


def read_support(answer: str, *, cut: bool = False) -> int | None:
    """Read 2 for full, 1 for partial and 0 for no support, however the words are joined and quoted.

    A label on its own line, or the answer's first sentence, counts, whatever is said elsewhere.
    Else an answer that names several labels, or denies one ("not full support"), is unparsed. An answer that
    was cut off counts where it is a label and nothing else.
    """
    return _read_text(answer, lambda text: _support(text, cut=cut))


def _support(text: str, *, cut: bool) -> int | None:
    first = re.split(r"[.!][*_'\"`]*+\s", text.strip(), maxsplit=1)[0]
    said = words(text)
    parts = (text,) if cut else (first, *text.splitlines())
    labels = {
        match[1] or match[2]
        for part in parts
        if "?" not in part and (match := _LABEL.fullmatch(" ".join(words(part))))
    }
    if "?" in first or not _RETRACTIONS.isdisjoint(said):
        return None
    if not labels and not cut:
        labels = {kind for kind, support in pairwise(said) if support == "support"}
        labels &= {"full", "partial", "no"}
        # "Fully supported or partial support" names two.
        if labels and not labels.issuperset(_ADVERBS[word] for word in said if word in _ADVERBS):
            return None
        denied = "not" in said or "n't" in text.replace("\u2019", "'")
        if denied or (labels != {"no"} and not _DENIALS.isdisjoint(said)):
            return None
    return dict(SUPPORT)[f"{labels.pop()}_support"] if len(labels) == 1 else None


def _answered(answer: str) -> bool:
    from rapidfuzz.fuzz import ratio

    # The workbench stems the whole text as if it were one word.
    stemmed = stemmer()(answer.lower())
    if answer in UNANSWERABLE or not stemmed:
        return False
    # Whole percents: fuzzywuzzy rounds.
    return not any(round(ratio(stemmed, expression)) > 80 for expression in map(stemmer(), UNANSWERABLE))


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
    answer = fence_removed(_HEADING.sub("", plain_characters(answer), count=1)).strip()
    known_labels = {as_label(label) for label in labels}
    if cut and not answer.endswith(("]", "}")):
        return None
    listed = [each.rstrip().removesuffix(",").split(",") for each in _LIST.findall(answer)]
    found = [[part.strip(_MARKS) for part in parts] for parts in listed]
    found = [parts for parts in found if any(as_label(part) in known_labels for part in parts)]
    if not found:
        found = [_of_json(answer) if "[" in answer or "{" in answer else _bare(answer)]
    as_labels = {tuple(map(as_label, parts)) for parts in found}
    is_read = len(as_labels) == 1 and all(map(known_labels.issuperset, as_labels))
    return found[0] if is_read and len(found[0]) == number else None


def _of_json(answer: str) -> list[str]:
    """Return the labels of JSON: a list of objects with a label each, or an object with numbers as keys."""
    members = [(member["name"], member["inner"].strip(_MARKS)) for member in MEMBER.finditer(answer)]
    if [key for key, _ in members] == [str(number) for number in range(1, len(members) + 1)]:
        return [label for _, label in members]
    members = [(key, label) for key, label in members if key in _LABEL_KEYS]
    return [label for _, label in members] if len({key for key, _ in members}) == 1 else []


def _bare(answer: str) -> list[str]:
    """Return the labels of a list without brackets; none where its numbers are not 1, 2, 3 ..."""
    lines = [line.rstrip(" ,") for line in answer.splitlines() if line.strip()]
    if len(lines) < 2 or any("," in line for line in lines):
        lines = answer.rstrip(" ,").split(",")
    parts = [_LISTED.fullmatch(line.strip()) for line in lines]
    listed = [part for part in parts if part]
    numbers = [int(part["number"]) for part in listed if part["number"]]
    # Each comes with its item, or none does.
    is_uniform = None not in parts and len({part["item"] is None for part in listed}) == 1
    if not is_uniform or numbers not in ([], [*range(1, len(parts) + 1)]):
        return []
    return [part["label"].strip(_MARKS) for part in listed]


def read_assignment(answer: str, ratings: Mapping[str, int], *, cut: bool = False) -> int | None:
    """Read the rating of a label, which is bare or a list of one."""
    listed = read_labels(answer, 1, ratings, cut=cut)
    rating_of_label = {as_label(each): rating for each, rating in ratings.items()}
    return rating_of_label[as_label(listed[0])] if listed else None
