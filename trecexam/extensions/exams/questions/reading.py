"""Reading of a multiple-choice question from a language model's answer: stem, four candidates, right letter.

Models write `A)`, `A.`, `(A)`, `a)`, `1.`, with bold marks, all on one line, with or without "Question:",
and "Answer: B", "The correct answer is B", "B) is correct", or the right candidate's text. Only unambiguous
questions are read; an article ("Answer: A pump ...") or the beginning of a word ("answer: because") is no
letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random
from typing import NamedTuple

from trecexam.bank.model import folded, words
from trecexam.extensions.exams.exam_file import LETTERS
from trecexam.graders.replies import Unread, whole_text

#: Minimum characters of a stem, as published.
_MIN_STEM = 50
#: Marks of candidates; a fifth mark reveals too many candidates.
_FAMILIES = ("ABCDE", "abcde", "12345")
_QUESTION = re.compile(
    r"^[ \t]*(?:[a-z-]+[ \t]+){0,3}question(?:[ \t]*#?\d+)?[ \t]*(?:[:.)]|$)[ \t]*", re.I | re.M
)
_NUMBER = re.compile(r"(?:Q\d{0,3}|\d{1,3}|stem)[.:)]\s+", re.I)
_HEADING = re.compile(
    r"\n[ \t]*(?:the[ \t]+)?(?:answer[ \t]+)?(?:candidates|options|choices|answers)[ \t]*:?[ \t]*\Z", re.I
)
_OPENING = re.compile(r"(?:sure|certainly|of course|okay|here(?:'s| is| are)|based on|below)\b.*[:!.]", re.I)
_SAYS = r"(?:correct|right|best)[ \t]+(?:answer|option|choice|candidate)(?:[ \t]+key)?"
_IS = r"[ \t]*(?:is\b[ \t]*:?|[:=-])"
#: Text after the candidates.
_AFTER = re.compile(
    r"\n[ \t]*\n"
    r"|\n[ \t]*(?:explanations?|rationale|reasoning|justification|note|hint|difficulty|source)\b"
    rf"|\n?[ \t]*(?:the[ \t]+)?{_SAYS}{_IS}"
    rf"|\n[ \t]*(?:the[ \t]+)?answer(?:[ \t]+key)?{_IS}"
    r"|[ \t]answer(?:[ \t]+key)?[ \t]*:",
    re.I,
)
_ANSWER = re.compile(
    rf"\b(?:{_SAYS}|answer(?:[ \t]+key)?){_IS}"
    r"\s*(?:(?:option|choice|candidate|letter|answer)\b[ \t]*)?(?P<said>[^\n]*)",
    re.I,
)
_CLAIM = re.compile(
    r"(?:^|(?<=[\s(\"']))\(?([A-D])[).]?[ \t]+is[ \t]+(?:the[ \t]+)?(?:only[ \t]+)?"
    r"(?:(?:correct|right|best)[ \t]+(?:answer|option|choice|candidate|one)\b"
    r"|(?:correct|right)(?=[ \t]*(?:[.,;:!)]|$|because\b|since\b|as\b)))",
    re.M,
)
#: A single letter or number.
_OWN = r"(?![\w'\u2019#+]|[.,]\d)"
_LETTER = re.compile(rf"[(\[{{\"']*([A-Da-d1-4]){_OWN}(?P<end>[)\]}}.:,\"']*)(?P<rest>.*)", re.S)
_MORE = re.compile(rf"[ \t]*(?:,|/|&|\band\b|\bor\b)[ \t]*(?:(?:and|or)[ \t]+)?[(\[]?[A-D1-4]{_OWN}")
_REASONED = re.compile(
    r"\s*\Z|[ \t]+[-\u2013\u2014]|[ \t]*[;(]|[ \t]+(?:because|since|as|which|for|and|it)\b", re.I
)
_MARKED = re.compile(
    r"[ \t]*(?:[(\[](?:the[ \t]+)?(?:correct|right)(?:[ \t]+answer)?[)\]]|[\u2713\u2714\u2705])[ \t]*\Z", re.I
)
#: The placeholders of the published prompt, repeated by a model.
_ECHO = re.compile(r"[{\[<(]?(?:candidate|option|choice|answer)[ \t]+[A-D1-4][}\]>)]?", re.I)
_BOLD = re.compile(r"(?<![\w*])\*\*(?=\S)([^\n]*?\S)(?:(?<=[).:\]])\*\*|\*\*(?!\w))")
_ITALIC = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]*?[^\s*])\*(?![\w*])")
_MARKDOWN = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|```\w*[ \t]*$)", re.M)


class Read(NamedTuple):
    """A question as written; `correct` is the index of the right candidate, 0..3."""

    question: str
    choices: tuple[str, ...]
    correct: int


def read_question(answer: str, *, cut: bool = False) -> Read | Unread:
    """Return the first question in an answer.

    Args:
        cut: the model was stopped before its end.
    """
    text = whole_text(answer.rpartition("### Assistant:")[2], cut=cut)
    if isinstance(text, Unread):
        return text
    text = _plain(text)
    marks = _marks(text)
    if marks is None:
        return Unread("no four candidates")
    if len(marks) > len(LETTERS):
        return Unread("more than four candidates")
    stem = _stem(text[: marks[0].start()])
    if not stem:
        return Unread("no question")
    if not stem.rstrip("\"'\u201d)").endswith("?"):
        return Unread("question without a question mark at its end")
    if len(stem) < _MIN_STEM:
        return Unread("question too short")
    raw, tail = _candidates(text, marks)
    right = [choice_index for choice_index, choice in enumerate(raw) if _MARKED.search(choice)]
    choices = tuple(_tidy(_MARKED.sub("", choice)) for choice in raw)
    if not all(words(choice) and not _ECHO.fullmatch(choice) for choice in choices):
        return Unread("a candidate without text")
    right_indices = set(_answers(tail, choices)) or set(_claims(tail)) or set(right)
    if len(right_indices) > 1 or -1 in right_indices:
        return Unread("more than one right answer")
    if not right_indices:
        return Unread("no answer letter")
    return Read(stem, choices, right_indices.pop())


def read_choice(answer: str, choices: Sequence[str], *, cut: bool = False) -> int | None:
    """Return the index of the candidate that an examinee chose; None if none or several are named.

    Args:
        cut: the model was stopped before its end; then nothing is read.
    """
    text = whole_text(answer.rpartition("### Assistant:")[2], cut=cut)
    if isinstance(text, Unread):
        return None
    text = _plain(text).strip()
    first = _place(text.partition("\n")[0].strip(), choices)
    choice_indices = {first} if first is not None else set(_answers(text, choices)) or set(_claims(text))
    return choice_indices.pop() if len(choice_indices) == 1 and -1 not in choice_indices else None


def shuffled(read: Read, seed: int, key: str) -> tuple[Read, tuple[int, ...]]:
    """Return the question with its candidates shuffled; depends only on seed and key.

    Args:
        key: key of the question, so that its order does not depend on other questions.

    Returns:
        The question, and the former index of each candidate.
    """
    order = list(range(len(read.choices)))
    # Strings seed the same generator everywhere.
    Random(f"{seed} {key}").shuffle(order)
    choices = tuple(read.choices[choice_index] for choice_index in order)
    return Read(read.question, choices, order.index(read.correct)), tuple(order)


def _plain(answer: str) -> str:
    """Return the answer without bold marks and headings."""
    text = answer.replace("\r\n", "\n").replace("\r", "\n")
    # A single blank avoids backtracking.
    text = re.sub(r"[ \t\f\v\u00a0]+", " ", text)
    text = _MARKDOWN.sub("", text)
    return _ITALIC.sub(r"\1", _BOLD.sub(r"\1", text))


def _marks(text: str) -> list[re.Match[str]] | None:
    """Return the marks of the first four consecutive candidates; five if a fifth follows."""
    patterns = [(_at_lines(family), family) for family in _FAMILIES]
    patterns += [(_anywhere(family), family) for family in _FAMILIES]
    marks_by_pattern = (_in_order(list(pattern.finditer(text)), family) for pattern, family in patterns)
    # The first of marks at the same position.
    return min(filter(None, marks_by_pattern), key=lambda marks: marks[0].end(), default=None)


@cache
def _at_lines(family: str) -> re.Pattern[str]:
    letter = f"([{family}])"
    return re.compile(
        r"^[ \t]*(?:[-*\u2022+][ \t]+)?(?:(?i:option|candidate|choice|answer)[ \t]+)?"
        rf"(?:\({letter}\)|\[{letter}\]|{letter}(?:\)|[.:](?=\s)))",
        re.M,
    )


@cache
def _anywhere(family: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\S)(?:\(([{family}])\)|([{family}])(?:\)|[.:](?=\s)))")


def _in_order(marks: Sequence[re.Match[str]], family: str) -> list[re.Match[str]] | None:
    letters = "".join(next(filter(None, mark.groups())) for mark in marks)
    start = letters.find(family[:4])
    if start < 0:
        return None
    return list(marks[start : start + (5 if letters.startswith(family, start) else 4)])


def _stem(before: str) -> str:
    before = _HEADING.sub("", "\n" + before.rstrip())
    labels = list(_QUESTION.finditer(before))
    if labels:
        return _tidy(before[labels[-1].end() :])
    paragraphs = [part for part in re.split(r"\n[ \t]*\n", before) if part.strip()]
    if not paragraphs:
        return ""
    lines = [line.strip() for line in paragraphs[-1].strip().splitlines()]
    if len(lines) > 1 and _OPENING.fullmatch(lines[0]):
        lines = lines[1:]
    if _NUMBER.match(lines[0]):
        lines[0] = _NUMBER.sub("", lines[0], count=1)
    return _tidy(" ".join(lines))


def _candidates(text: str, marks: Sequence[re.Match[str]]) -> tuple[list[str], str]:
    """Return the candidates' texts, and what follows the last one."""
    candidates: list[str] = []
    end = len(text)
    for mark, after in zip(marks, [*marks[1:], None], strict=True):
        part = text[mark.end() : len(text) if after is None else after.start()]
        stop = _AFTER.search(part)
        candidate = part[: stop.start()] if stop else part
        if after is None:
            if all("\n" not in each for each in candidates):
                blank = len(candidate) - len(candidate.lstrip())
                candidate = candidate[:blank] + candidate[blank:].partition("\n")[0]
            end = mark.end() + len(candidate)
        candidates.append(candidate.strip())
    tail = text[end:]
    again = _QUESTION.search(tail)
    return candidates, tail[: again.start()] if again else tail


def _answers(tail: str, choices: Sequence[str]) -> Iterator[int]:
    """Yield the indices of the candidates stated as right; -1 if a statement names several."""
    for answer in _ANSWER.finditer(tail):
        choice_index = _place(answer["said"].strip(), choices)
        if choice_index is not None:
            yield choice_index


def _claims(tail: str) -> Iterator[int]:
    """Yield indices of candidates from statements such as "B is correct"; -1 if a statement names several."""
    for claim in _CLAIM.finditer(tail):
        yield LETTERS.index(claim[1])


def _place(answer: str, choices: Sequence[str]) -> int | None:
    """Return the index of the candidate that an answer names."""
    texts = [folded(choice) for choice in choices]
    whole = folded(answer)
    if texts.count(whole) == 1:
        return texts.index(whole)
    letter = _LETTER.match(answer)
    if letter is None:
        return None
    choice_index = "ABCD1234".index(letter[1].upper()) % 4
    rest = letter["rest"]
    if _MORE.match(letter["end"].strip(")]}.:\"'") + rest):
        return -1
    candidate_text = folded(rest)
    if candidate_text in texts and candidate_text != texts[choice_index]:
        return -1
    if letter["end"] or _REASONED.match(rest):
        return choice_index
    # "A pump" and "2 pumps" may be texts, "B pumps" not; lower-case letters are words.
    if candidate_text[: len(texts[choice_index])] == texts[choice_index] or letter[1] in "BCD":
        return choice_index
    return None


def _tidy(text: str) -> str:
    """Return a text on one line, without quotes around it."""
    text = " ".join(text.split())
    if len(text) > 2 and text[0] == text[-1] == '"' and '"' not in text[1:-1]:
        text = text[1:-1].strip()
    return text
