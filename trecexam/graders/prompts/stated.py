"""Ratings that a text states: alone on a line, after their name, in JSON, in a tag or in a sentence."""

from __future__ import annotations

import ast
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

#: A number that is stated as the rating, and cannot be one: "8/10", "3-4", "-1", "3.5".
NO_RATING: Literal[-1] = -1

_WORDS = {"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
_DASH = r"\-\u2013\u2014"
# Dashes and quotation marks of all kinds. Currency, signs and comparisons are left out: "$4" and "<4" are
# no ratings.
_MARKS = rf"\s{_DASH}*_.,:;!?'\"`\u201c\u201d\u2018\u2019()\[\]{{}}|"
# Possessive quantifiers (*+): what was matched is never given back, so that no answer takes long to read.
LEAD = rf"[{_MARKS}\u2022#/\\]*+"
_WORD = rf"(?:{'|'.join(_WORDS)})(?=\s{{0,10}}(?:\Z|\n)|[.,;:!)\]}}*_\"']|\s++out\b|\s{{0,4}}/)"
_MORE = rf"(?:[0-9]|(?:{'|'.join(_WORDS)})\b)"
#: A number and all that makes it another one: sign, decimals, the best of its scale, the end of a range.
NUMBER = re.compile(
    rf"(?P<sign>(?<![^\W_])[-+\u2212\u2013](?=[0-9])|[<>\u2264\u2265~\u2248$\u20ac\u00a3.,](?=[0-9]))?+"
    rf"(?P<whole>[0-9]++|{_WORD})(?P<decimals>[.,][0-9]++)?+"
    r"(?:\s*+(?:/|(?:out\s++)?of\b)\s*+(?:a\s++possible\s++)?(?P<best>[0-9]++(?:\.0++)?+))?+"
    r"(?:\s?(?:\u5206|\u70b9|\uc810|points?\b|stars?\b))?+"
    rf"(?P<more>[^\W_]|%|\+|/|\s*+(?:[{_DASH}~]|to\b|or\b|and\b|,)\s*+{_MORE}|[.:,][0-9])?+",
    re.I,
)
_SCORE_NAMES = (
    r"rating|score|grade|\u8bc4\u5206|\u8bc4\u7ea7|\u5f97\u5206|\u6253\u5206|\u5206\u6570|\u8a55\u4fa1|"
    r"\u8a55\u70b9|\u8a55\u5206|\u5f97\u70b9|\u30b9\u30b3\u30a2|\ud3c9\uc810|\uc810\uc218|bewertung|"
    r"puntuaci\u00f3n|calificaci\u00f3n|valoraci\u00f3n|pontua\u00e7\u00e3o|punteggio|"
    r"\u043e\u0446\u0435\u043d\u043a\u0430|\u0440\u0435\u0439\u0442\u0438\u043d\u0433|\u0627\u0644\u062a\u0642\u064a\u064a\u0645"
)
_BEFORE = r"(?:(?:the|my|final|overall|self|relevance|answer|question|passage)[\s-]++)"
_SCALE = r"(?:[\s*_]*+\([^()\n]{0,40}\))?+"
_IS = r"(?:(?:would|should|will)\s++be\b|is\b|[:=\u2192|]|-{1,2}>|\u2014)"
_NAME = (
    rf"(?:{_BEFORE}{{0,4}}+(?:self-?)?(?:(?P<name>{_SCORE_NAMES})(?![^\W_])[*_'\"`]*+{_SCALE}[*_'\"`]*+\s*+{_IS}?"
    r"|(?P<answer>answer|\u7b54\u6848|\u7b54\u3048)[*_'\"`]*+\s*+[:=])|(?:the\s++)?final\s++(?P<final>answer|decision|verdict)\s++is\b)"
)
_LINE = re.compile(rf"{LEAD}(?:{_NAME})?+{LEAD}(?=[0-9])", re.I)
_WORD_LINE = re.compile(rf"{LEAD}(?:{_NAME})?+{LEAD}(?=[a-z])", re.I)
#: Behind a number: nothing but punctuation; or what can be no beginning of something longer; or a mark that
#: sets off its label.
_END = re.compile(rf"[{_MARKS}]*+")
_CLOSING = re.compile(r"[\s*_'\"`)\]}>]*+")
_SET_OFF = re.compile(rf"[*_'\"`)\]}}]*(?:[:.)\]]|\s+[{_DASH}:=])[*_'\"`]*\s+(?=[^\W\d])")
_EXPLAINS = re.compile(
    r"(?:(?:the|this)\s+(?:passage|context|text|document|paragraph)|because|since)\b", re.I
)

_STATED = re.compile(
    rf"(?P<before>{_BEFORE}{{0,4}}+)(?:self-?)?(?<![^\W_])(?:{_SCORE_NAMES}|(?<=final\s)answer)(?![^\W_])[*_'\"`\]]{{0,4}}+{_SCALE}"
    rf"[*_'\"`]{{0,4}}+\s{{0,20}}+{_IS}[\s*_'\"`:({{\[|\\]{{0,20}}+(?=[-+\u2212\u2013<>~$]?[0-9]|(?:{'|'.join(_WORDS)})\b)",
    re.I,
)
_GIVEN = re.compile(
    r"(?:\b(?:I|we)(?:['\u2019](?:d|ll)|\s++(?:would|will|can|shall))?+\s++(?:rate|give|score|assign|grade|award)\b"
    r"(?P<between>[^.!?\n0-9]{0,80}?)"
    r"|\b(?:gets|deserves|earns|receives|merits|is\s++rated|(?:this|it|that|passage)\s++is)\s++"
    r"(?:an?\s++)?(?:(?:rating|score|grade)\s++(?:of\s++)?)?)"
    rf"(?<![^\s*_\"'(])(?=[*_\"'(]{{0,4}}+{_MORE})[*_\"'(]{{0,4}}+",
    re.I,
)
_HEDGED = re.compile(
    r"\b(?:not|never|less|lower|more|higher|than|above|below|between|least|most|about|around|under|over|"
    r"nearly|almost|first|initially|if)\b",
    re.I,
)
_CLOSED = re.compile(
    r"[*_\"')\]]*+\s*+(?:\Z|[.;:!\n]|,(?!\s*+(?:if|unless|but|though|however)\b)|\(|(?:because|since|as|for|on)\b)",
    re.I,
)
_ELEMENT = re.compile(
    r"<(?P<name>(?:final[_ ]?)?(?:rating|score|grade|answer|result|label|output|response|verdict))\s?>"
    r"(?P<inner>[^<>]{0,400})</(?P=name)\s?>",
    re.I,
)
_BOX = re.compile(r"\\boxed\s?\{(?P<inner>(?:[^{}]|\{[^{}]{0,80}\}){0,200})\}")
_TEX = re.compile(r"\\(?:text|mathrm|mathbf|textbf)\s?(?=\{)")
_FENCE = re.compile(r"```\w{0,20}\s?(?P<inner>[^`]{0,400})```")
_OBJECT = re.compile(r"\{(?=\s{0,40}[\"'}])")
#: Positions that are tried as the beginning of JSON, and characters of a Python dictionary.
_TRIES, _LONGEST_DICT = 16, 4_000
_PYTHON_OBJECT = re.compile(rf"\{{[^{{}}]{{0,{_LONGEST_DICT}}}\}}")
_KEYS = frozenset((
    "rating", "score", "grade", "answer", "finalrating", "finalscore", "finalanswer", "selfrating",
    "relevance", "relevancescore", "relevancerating", "overall", "overallrating", "overallscore", "result",
    "value", "label", "o",
))  # fmt: skip


_EXAMPLE = re.compile(r"\b(?:example|instance|e\.g)\b[^\n\w]{0,8}$", re.I)


def plain_characters(text: str) -> str:
    """Return the text with digits and punctuation of ASCII, without invisible characters and symbols."""
    foreign = {character for character in text if character > "\x7f"}
    if not foreign and "<" not in text and "$" not in text:
        return text
    text = text.translate({ord(each): _plain(each) for each in foreign})
    # A number in angle brackets, or set as mathematics.
    return re.sub(r"<\s?([0-9])\s?>|\$([0-9])\$", r"\1\2", text)


def _plain(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if "\uff01" <= character <= "\uff5e":
        return chr(ord(character) - 0xFEE0)
    if category == "Cf" or "\ufe00" <= character <= "\ufe0f" or character == "\u20e3":
        return ""
    if category == "Zs" or (category == "So" and character != "\u00b0"):
        return " "
    return character


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return re.findall(r"[^\W_]+", text.casefold())


def rating_of(number: re.Match[str], max_rating: int) -> int:
    """Return the rating that a match of `NUMBER` is, or `NO_RATING`."""
    whole, decimals, best = number["whole"].lower(), number["decimals"], number["best"]
    rating = _WORDS.get(whole, NO_RATING) if not whole.isdecimal() else int(whole[:3])
    whole_number = decimals is None or not decimals.strip(".,0")
    same_scale = best is None or float(best[:6]) == max_rating
    fits = len(whole) == 1 or whole in _WORDS
    good = fits and not number["sign"] and not number["more"] and whole_number and same_scale
    return rating if good and rating <= max_rating else NO_RATING


def alone(
    text: str, max_rating: int, labels: Mapping[int, str], *, named: bool = False, cut: bool = False
) -> int | None:
    """Return the rating that a text is, with its name before and its label behind; None for other texts.

    Args:
        named: only with its name.
        cut: only where more text could not make it another rating.
    """
    line = _LINE.match(text) or _WORD_LINE.match(text)
    if line is None or (named and not (line["name"] or line["answer"] or line["final"])):
        return None
    # A sign before the number is the number's.
    start = line.end() - (text[line.start() : line.end()][-1:] in {"-", "\u2013", ".", ","})
    number = NUMBER.match(text, start)
    if number is None:
        return None
    rest = text[number.end() :]
    rating = rating_of(number, max_rating)
    if (_CLOSING if cut else _END).fullmatch(rest):
        return rating
    if cut or rating == NO_RATING:
        return None
    if not labels:
        return rating if _SET_OFF.match(rest) else None
    set_off = _SET_OFF.match(rest)
    explains = set_off is not None and _EXPLAINS.match(rest, set_off.end()) is not None
    return rating if explains or is_label(rest, rating, labels) else None


def is_label(rest: str, rating: int, labels: Mapping[int, str]) -> bool:
    """Return True for text behind a digit that is the rating's label, a part or the beginning of the label.

    A beginning that other ratings' labels share ("The answer is") tells nothing of what comes after it.
    """
    following, label_words = words(rest), words(labels.get(rating, ""))
    if not following or not label_words:
        return False
    if f" {' '.join(following)} " in f" {' '.join(label_words)} ":
        # Nothing sets "4 weeks" off from its digit: there it takes two words of the label to tell.
        return len(following) >= 2 or _SET_OFF.match(rest) is not None
    shared = _in_common(following, label_words)
    return shared >= 2 and all(
        shared > _in_common(following, words(text)) for other, text in labels.items() if other != rating
    )


def _in_common(first: list[str], second: list[str]) -> int:
    """Return how many words both begin with."""
    return next(
        (index for index, (left, right) in enumerate(zip(first, second, strict=False)) if left != right),
        min(len(first), len(second)),
    )


def explicit(text: str, max_rating: int, labels: Mapping[int, str]) -> Iterator[tuple[int, bool]]:
    """Yield the ratings that a text states by name: in JSON, tags, boxes and fences, and in its prose.

    Each is a rating, or `NO_RATING`, and True where the text calls it final.
    """
    prose: list[str] = []
    start = 0
    for begin, end, value in objects(text):
        prose.append(text[start:begin])
        start = end
        rating = in_json(value, max_rating, labels)
        if rating is not None:
            yield rating, False
    text = "\n".join((*prose, text[start:]))
    fenced = [match["inner"].strip() for match in _FENCE.finditer(text)]
    for inner in (*marked(text), *fenced):
        rating = alone(inner, max_rating, labels)
        if rating is None and inner not in fenced and re.match(r"[-+]?[0-9]", inner):
            rating = NO_RATING
        if rating is not None:
            yield rating, False
    for match in _STATED.finditer(text):
        if _begins_clause(text, match):
            number = NUMBER.match(text, match.end())
            if number is not None:
                yield rating_of(number, max_rating), "final" in match["before"].lower()
    for line in text.splitlines():
        rating = alone(line, max_rating, labels, named=True) if len(line) < _LONGEST_DICT else None
        if rating is not None:
            yield rating, "final" in line.lower()


def marked(text: str) -> list[str]:
    """Return what tags and boxes of an answer hold."""
    matches = (*_ELEMENT.finditer(text), *_BOX.finditer(text))
    return [_TEX.sub("", match["inner"]).strip("{} \n") for match in matches]


def _begins_clause(text: str, match: re.Match[str]) -> bool:
    """Return False for "confidence score": the name must begin a clause, or have a word that tells whose."""
    if _EXAMPLE.search(text[max(0, match.start() - 24) : match.start()]):
        return False
    if match["before"] or match[0][0] > "\x7f":
        return True
    before = text[max(0, match.start() - 8) : match.start()].rstrip(" *_#`\"'([{\t")
    return not before or not (before[-1].isalnum() or before[-1] in "-/")


def given(text: str, max_rating: int) -> int | None:
    """Return the rating that a sentence gives ("I would rate this passage a 4."); None where unsure.

    Another number of the scale behind it leaves open which one counts.
    """
    ratings = set()
    last = 0
    for match in _GIVEN.finditer(text):
        number = NUMBER.match(text, match.end())
        if number is None or _HEDGED.search(match["between"] or ""):
            continue
        rating = rating_of(number, max_rating)
        if rating != NO_RATING and not _CLOSED.match(text, number.end()):
            continue
        ratings.add(rating)
        last = number.end()
    if len(ratings) != 1 or re.search(rf"(?<![0-9.,])[0-{max_rating}](?![0-9])", text[last:]):
        return None
    return ratings.pop()


def objects(text: str) -> Iterator[tuple[int, int, Any]]:
    """Yield (begin, end, value) of JSON objects and Python dictionaries in a text."""
    decoder = json.JSONDecoder(strict=False)
    end = 0
    for _ in range(_TRIES):
        match = _OBJECT.search(text, end)
        if match is None:
            return
        start = match.start()
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            value, end = _python_object(text, start)
        if isinstance(value, dict):
            yield start, end, value


def _python_object(text: str, start: int) -> tuple[Any, int]:
    """Return the Python dictionary at a place and its end; None and the next place where there is none."""
    written = _PYTHON_OBJECT.match(text, start)
    try:
        return (ast.literal_eval(written[0]), written.end()) if written else (None, start + 1)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None, start + 1


def in_json(value: Any, max_rating: int, labels: Mapping[int, str], depth: int = 0) -> int | None:
    """Return the rating in a JSON value, or `NO_RATING`; None where nothing in it is called a rating."""
    if depth > 4 or value is None:
        return None
    if isinstance(value, list):
        return agreed([in_json(each, max_rating, labels, depth + 1) for each in value[:20]])
    if isinstance(value, dict):
        members = {re.sub(r"[^a-z]", "", str(key).lower()): each for key, each in value.items()}
        if "o" in members and not {"m", "t"} & members.keys() and len(members) > 1:
            del members["o"]
        if depth or len(value) > 1:
            members = {key: each for key, each in members.items() if key in _KEYS}
        return agreed([in_json(each, max_rating, labels, depth + 1) for each in members.values()])
    if isinstance(value, str):
        return alone(plain_characters(value), max_rating, labels)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NO_RATING
    return int(value) if value in range(max_rating + 1) else NO_RATING


def agreed(ratings: Iterable[int | None]) -> int | None:
    """Return the only rating of several, `NO_RATING` where they differ; None where there is none."""
    distinct = {rating for rating in ratings if rating is not None}
    return None if not distinct else distinct.pop() if len(distinct) == 1 else NO_RATING
