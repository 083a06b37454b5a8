"""Ratings that a text states: alone on a line, after their name, in JSON, in a tag or in a sentence."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile

#: A number that is stated as the rating, and cannot be one: "8/10", "3-4", "-1", "3.5".
NO_RATING = -1

_WORDS = {"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
_DASH = r"\-\u2013\u2014"
# Dashes and quotation marks of all kinds. Currency, signs and comparisons are left out: "$4" and "<4" are
# no ratings.
_MARKS = rf"\s{_DASH}*_.,:;!?'\"`\u201c\u201d\u2018\u2019()\[\]{{}}|"
# Possessive quantifiers (*+): what was matched is never given back, so that no answer takes long to read.
_LEAD = rf"[{_MARKS}\u2022#/\\]*+"
_WORD = rf"(?:{'|'.join(_WORDS)})(?=\s{{0,10}}(?:\Z|\n)|[.,;:!)\]}}*_\"']|\s++out\b|\s{{0,4}}/)"
_DIGIT = rf"(?:[0-9]|(?:{'|'.join(_WORDS)})\b)"
#: A number and all that makes it another one: sign, decimals, the best of its scale, the end of a range.
_NUMBER = (
    r"(?P<sign>(?<![^\W_])[-+\u2212\u2013](?=[0-9])|[<>\u2264\u2265~\u2248$\u20ac\u00a3](?=[0-9])|(?<=[-\u2013.,])(?=[0-9]))?+"
    rf"(?P<whole>[0-9]++|{_WORD})(?P<decimals>[.,][0-9]++)?+"
    r"(?:\s*+(?:/|(?:out\s++)?of\b)\s*+(?:a\s++possible\s++)?(?P<best>[0-9]++(?:\.0++)?+))?+"
    r"(?:\s?(?:\u5206|\u70b9|\uc810|points?\b|stars?\b))?+"
    rf"(?P<more>[^\W_]|%|\+|/|\s*+(?:[{_DASH}~]|to\b|or\b|and\b|,)\s*+{_DIGIT}|[.:,][0-9])?+"
)
_NAMES = (
    r"(?:rating|score|grade|\u8bc4\u5206|\u8bc4\u7ea7|\u5f97\u5206|\u6253\u5206|\u5206\u6570|\u8a55\u4fa1|"
    r"\u8a55\u70b9|\u8a55\u5206|\u5f97\u70b9|\u30b9\u30b3\u30a2|\ud3c9\uc810|\uc810\uc218|bewertung|"
    r"puntuaci\u00f3n|calificaci\u00f3n|valoraci\u00f3n|pontua\u00e7\u00e3o|punteggio|"
    r"\u043e\u0446\u0435\u043d\u043a\u0430|\u0440\u0435\u0439\u0442\u0438\u043d\u0433|\u0627\u0644\u062a\u0642\u064a\u064a\u0645"
    r")(?![^\W_])"
)
_BEFORE = r"(?:(?:the|my|final|overall|self|relevance|answer|question|passage)[\s_-]++){0,4}+(?:self-?)?"
_SCALE = r"[*_'\"`\]]{0,4}+(?:[\s*_]*+\([^()\n]{0,40}\))?+[*_'\"`]{0,4}+"
_IS = r"(?:(?:would|should|will)\s++be\b|is\b|[:=\u2192|]|-{1,2}>|\u2014)"
#: A line that is a rating, but for what is behind its number. An answer can be another number, too.
_LINE = re.compile(
    rf"{_LEAD}(?P<name>{_BEFORE}(?:{_NAMES}{_SCALE}\s*+{_IS}?|(?:answer|\u7b54\u6848|\u7b54\u3048)[*_'\"`]*+\s*+[:=])"
    rf"|(?:the\s++)?final\s++(?:answer|decision|verdict)\s++is\b)?+{_LEAD}{_NUMBER}",
    re.I,
)
#: A rating with its name in prose.
_IN_PROSE = re.compile(
    rf"(?P<before>{_BEFORE})(?<![^\W_])(?:{_NAMES}|(?<=final\s)answer\b){_SCALE}\s{{0,20}}+{_IS}"
    rf"[\s*_'\"`:({{\[|\\]{{0,20}}+{_NUMBER}",
    re.I,
)
#: In front of the name: another word ("confidence score"), or that this is an example.
_OTHERS = re.compile(r"(?:[^\W_]|[-/])[ \t*_#`\"'(\[{]*\Z")
_EXAMPLE = re.compile(r"\b(?:example|instance|e\.g)\b[^\n\w]{0,8}\Z", re.I)
#: The scores of UMBRELA's steps: intent match, trustworthiness, and the overall one.
_STEP = re.compile(
    r"(?<![^\W_])(?P<step>(?-i:[MTO]))[\"'*_`]{0,4}\s{0,4}[:=][\s*_\"'`]{0,8}+" + _NUMBER, re.I
)
#: Behind a number: nothing but punctuation; or what can be no beginning of something longer; or a mark that
#: sets off its label.
_END = re.compile(rf"[{_MARKS}]*+")
_CLOSING = re.compile(r"[\s*_'\"`)\]}>]*+")
_SET_OFF = re.compile(rf"[*_'\"`)\]}}]*(?:[:.)\]]|\s+[{_DASH}:=])[*_'\"`]*\s+(?=[^\W\d])")
_EXPLAINS = re.compile(
    r"(?:(?:the|this)\s+(?:passage|context|text|document|paragraph)|because|since)\b", re.I
)
_GIVEN = re.compile(
    r"(?>(?:\b(?:I|we)(?:['\u2019](?:d|ll)|\s++(?:would|will|can|shall))?+\s++(?:rate|give|score|assign|grade|award)\b"
    r"[^.!?\n0-9]{0,80}?"
    r"|\b(?:gets|deserves|earns|receives|merits|is\s++rated|(?:this|it|that|passage)\s++is)\s++"
    r"(?:an?\s++)?(?:(?:rating|score|grade)\s++(?:of\s++)?)?)"
    rf"(?<![^\s*_\"'(])(?=[*_\"'(]{{0,4}}+{_DIGIT}))[*_\"'(]{{0,4}}+{_NUMBER}",
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
#: A member of a JSON object or a Python dictionary, whole or not, and the keys of ratings and labels.
MEMBER = re.compile(
    r"[{,]\s*+(?P<quote>[\"'])(?P<name>[^\"'\\\n]{1,60})(?P=quote)\s*+:\s*+"
    r"(?P<inner>\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|[^\s,{}\[\]\"']++(?=\s*+(?:[}\]]|,\s*+[\"'}]|\Z)))",
    re.DOTALL,
)
_KEY = re.compile(
    r"(?:final|self|overall|relevance|support)?(?:rating|score|grade|answer|label|level|category)|support|"
    r"overall|relevan(?:t|ce)|verdict|judge?ment|classification|result|response|value|o"
)
_ELEMENT = re.compile(
    r"<(?P<name>(?:final[_ ]?)?(?:rating|score|grade|answer|result|label|output|response|verdict))\s?>"
    r"(?P<inner>[^<>]{0,400})</(?P=name)\s?>",
    re.I,
)
_BOX = re.compile(
    r"\\(?P<name>boxed)\s?\{(?:\\(?:text|mathrm|mathbf|textbf)\s?)?\{?(?P<inner>[^{}]{0,400})\}"
)


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
    if "\uff01" <= character <= "\uff5e":
        return chr(ord(character) - 0xFEE0)
    if category == "Cf" or "\ufe00" <= character <= "\ufe0f" or character == "\u20e3":
        return ""
    if category == "Zs" or (category == "So" and character != "\u00b0"):
        return " "
    return str(unicodedata.decimal(character, character))


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return re.findall(r"[^\W_]+", text.casefold())


def agreed(ratings: Iterable[int | None]) -> int | None:
    """Return the only rating of several, `NO_RATING` where they differ; None where there is none."""
    distinct = {rating for rating in ratings if rating is not None}
    return None if not distinct else distinct.pop() if len(distinct) == 1 else NO_RATING


def held(text: str) -> tuple[list[tuple[str, str]], str]:
    """Return (name, value) of what stands in JSON, tags and boxes; and the text without JSON."""
    members = [*MEMBER.finditer(text)]
    found = [each for each in members if _KEY.fullmatch(re.sub(r"[^a-z]", "", each["name"].lower()))]
    prose = MEMBER.sub("\n", text)
    found += [*_ELEMENT.finditer(prose), *_BOX.finditer(prose)]
    return [(match["name"].lower(), match["inner"]) for match in found], prose


def _rating_of(number: re.Match[str], max_rating: int) -> int:
    """Return the rating that a match of `_NUMBER` is, or `NO_RATING`."""
    whole, decimals, best = number["whole"].lower(), number["decimals"], number["best"]
    rating = int(whole) if len(whole) == 1 else _WORDS.get(whole, NO_RATING)
    is_whole = decimals is None or not decimals.strip(".,0")
    same_scale = best is None or float(best[:6]) == max_rating
    good = number["sign"] is None and not number["more"] and is_whole and same_scale
    return rating if good and rating <= max_rating else NO_RATING


def alone(
    text: str, max_rating: int, labels: Mapping[int, str], *, cut: bool = False
) -> tuple[str, int | None]:
    """Return the name and the rating that a text is, with its label behind; "" and None for other texts.

    Args:
        cut: only where more text could not make it another rating.
    """
    line = _LINE.match(text)
    if line is None:
        return "", None
    rating, rest = _rating_of(line, max_rating), text[line.end() :]
    ends = (_CLOSING if cut else _END).fullmatch(rest) is not None
    if not ends and (cut or rating == NO_RATING or not _is_label(rest, rating, labels)):
        return "", None
    return (line["name"] or "").lower(), rating


def _is_label(rest: str, rating: int, labels: Mapping[int, str]) -> bool:
    """Return True for text behind a digit that is the rating's label, a part or the beginning of the label.

    A beginning that other ratings' labels share ("The answer is") tells nothing of what comes after it.
    Without labels, whatever a mark sets off counts; with them, a reason.
    """
    set_off = _SET_OFF.match(rest)
    if set_off and (not labels or _EXPLAINS.match(rest, set_off.end())):
        return True
    following, label = words(rest), words(labels.get(rating, ""))
    if f" {' '.join(following)} " in f" {' '.join(label)} ":
        # Nothing sets "4 weeks" off from its digit: there it takes two words of the label to tell.
        return len(following) >= 2 or set_off is not None
    shared, *others = (
        len([*takewhile(lambda pair: pair[0] == pair[1], zip(following, words(text), strict=False))])
        for text in (labels.get(rating, ""), *(labels[other] for other in labels if other != rating))
    )
    return shared >= 2 and shared > max(others, default=0)


def in_prose(text: str, max_rating: int) -> Iterator[tuple[str, int]]:
    """Yield the name and the rating, or `NO_RATING`, of each rating that a text names."""
    for match in _IN_PROSE.finditer(text):
        before = text[max(0, match.start() - 24) : match.start()]
        is_clause = match["before"] or match[0][0] > "\x7f" or not _OTHERS.search(before)
        if is_clause and not _EXAMPLE.search(before):
            yield match[0].lower(), _rating_of(match, max_rating)
    steps = {match["step"]: _rating_of(match, max_rating) for match in _STEP.finditer(text)}
    if "O" in steps and len(steps) > 1:
        yield "O", steps["O"]


def given(text: str, max_rating: int) -> int | None:
    """Return the rating that a sentence gives ("I would rate this passage a 4."); None where unsure.

    Another number of the scale behind it leaves open which one counts.
    """
    ratings = set()
    last = 0
    for match in _GIVEN.finditer(text):
        rating = _rating_of(match, max_rating)
        if not _HEDGED.search(match[0]) and (rating == NO_RATING or _CLOSED.match(text, match.end())):
            ratings.add(rating)
            last = match.end()
    if len(ratings) != 1 or re.search(rf"(?<![0-9.,])[0-{max_rating}](?![0-9])", text[last:]):
        return None
    return ratings.pop()
