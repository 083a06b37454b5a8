"""Reading of two scores of 1 to 5 from a judge's answer; ambiguous answers are rejected."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from trecexam.graders.replies import Unread, fence_removed, whole_text

#: Possible scores: 1 to 5, halves included.
PERMITTED = tuple(half / 2 for half in range(2, 11))
_NUMBER = r"[-+]?[0-9]++(?:\.[0-9]++)?"
_MARKS = r"[\s\"'*_`:=|{]*+"
#: A name, what may stand around it, and the number that follows; possessive, so that no answer takes long.
_SCORE = re.compile(
    r"(?<![^\W_])(?P<name>relevance|truthfull?ness)(?![^\W_])[\s_-]*+(?:(?:score|rating|grade)(?![^\W_]))?"
    # "(1-5)" and "(out of 5)" say the scale; "(4)" is a score.
    rf"[\s\"'*_`]*+(?:\((?!\s*+{_NUMBER}\s*+\))[^()]{{0,40}}\))?{_MARKS}(?:(?:is|of|score|rating)\b{_MARKS})*+"
    rf"(?:[-\u2013\u2014]+>?\s++)?\(?(?P<number>{_NUMBER})"
    r"(?P<scale>\s*+(?:/|out\s++of)\s*+5(?![0-9]|\.[0-9]))?"
    r"(?P<more>\s*+(?:[-\u2013\u2014~/]|to\b|or\b|out\s++of\b)\s*+[0-9]|%|[.,:][0-9]|[^\W_])?",
    re.IGNORECASE,
)


class Scores(NamedTuple):
    """A judge's scores of an answer, 1..5, 5 is best; halves are possible."""

    truthfulness: float
    relevance: float


def read_scores(answer: str, *, cut: bool = False) -> Scores | None:
    """Return the two scores of a JSON object, or of text like "relevance: 4, truthfulness: 5"; else None.

    None is returned for missing scores, scores outside 1..5, neither whole nor half ("4.2", "4-5", "4/10"),
    or contradictory.

    Args:
        cut: True if the answer was cut off; then None is returned.
    """
    text = whole_text(answer, cut=cut)
    if isinstance(text, Unread):
        return None
    pairs = _json_pairs(text)
    if {name for name, _ in pairs} != {"relevance", "truthfulness"}:
        pairs = [(_name(match["name"]), _written(match)) for match in _SCORE.finditer(text)]
    relevance, truthfulness = (
        _agreed(value for name, value in pairs if name == kind) for kind in ("relevance", "truthfulness")
    )
    return None if relevance is None or truthfulness is None else Scores(truthfulness, relevance)


def _json_pairs(text: str) -> list[tuple[str, float | None]]:
    """Return the scores at the top level of a JSON object; empty for other texts."""
    try:
        # As pairs, to keep repeated names.
        pairs = json.loads(fence_removed(text), object_pairs_hook=_Pairs, strict=False)
    except (ValueError, RecursionError):
        return []
    named = [(_name(key), each) for key, each in pairs] if isinstance(pairs, _Pairs) else []
    return [(name, _number(each)) for name, each in named if name in ("relevance", "truthfulness")]


class _Pairs(list[tuple[str, Any]]):
    """A JSON object."""


def _name(text: str) -> str:
    return re.sub(r"[\s_-]*(score|rating|grade)$", "", text.strip().lower()).replace("fulln", "fuln")


def _number(value: object) -> float | None:
    if isinstance(value, _Pairs):
        inner = [each for key, each in value if key.strip().lower() in ("score", "rating")]
        value = inner[0] if len(inner) == 1 else None
    if isinstance(value, str):
        whole = re.fullmatch(rf"\s*({_NUMBER})(?:\s*/\s*5)?\s*", value)
        return _permitted(whole[1]) if whole else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return _permitted(str(value))


def _written(match: re.Match[str]) -> float | None:
    return None if match["more"] else _permitted(match["number"])


def _permitted(number: str) -> float | None:
    value = float(number)
    return value if value in PERMITTED else None


def _agreed(values: Iterable[float | None]) -> float | None:
    """Return the common value of all scores, or None."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None
