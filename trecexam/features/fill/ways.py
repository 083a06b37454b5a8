"""By what holes are filled: the grader or learning; and which unless told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError
from trecexam.features.fill.arithmetic import scale_map
from trecexam.features.fill.teaching import GRADER, LABEL, LEARNED, teacher, the_teacher

if TYPE_CHECKING:
    from trecexam.config import ScoresSection
    from trecexam.features.fill.arithmetic.scale_map import RuleName, ScaleMap
    from trecexam.features.fill.filled import FillRequest
    from trecexam.line.assessment import Assessment
    from trecexam.line.official import Official


#: Higher labels than this are refused, as readers of qrels do.
_DIGITS = 9


def check_request(request: FillRequest) -> None:
    """Refuses a way that there is not.

    Raises:
        TrecexamError: with the options.
    """
    if request.by not in (None, GRADER, LEARNED):
        raise TrecexamError(f"--by {request.by}: is none of grader and learned")


def constant_label(way: str) -> int | None:
    """N of the way "label:N"; None of others."""
    parts = re.fullmatch(rf"{LABEL}([0-9]{{1,{_DIGITS}}})", way)
    return None if parts is None else int(parts[1])


def choose_way(
    track: Assessment, official: Official, request: FillRequest
) -> tuple[str, bool, tuple[str, ...]]:
    """By what holes are filled.

    Where nothing is asked for, by learned labels if the last cross-validation is of these judgments, and
    found these the best; else by the grader. Where learned labels are asked for and it found another way the
    best, a note says so.

    Returns:
        "grader" or "learned"; of "learned", whether the grader's ratings are features, as they were in the
        cross-validation; what is to be said of the choice, a line each.
    """
    mapped = bool(request.rule or request.cuts)
    if request.by == GRADER or (mapped and request.by is None):
        return GRADER, True, ()
    if request.by is None and teacher() is None:
        return GRADER, True, ()
    verdict = the_teacher().advice(track, official)
    unmapped = ("learned labels are on the official scale already: --map changes nothing",) if mapped else ()
    if verdict.best is None:
        if request.by is None:
            return GRADER, True, (f"{verdict.why}; until then the grader fills",) if verdict.why else ()
        unchecked = "nobody has checked that learned labels are the best way here; "
        return LEARNED, True, (verdict.why or f"{unchecked}{verdict.check} does", *unmapped)
    shown = f"cross-validation here: {verdict.summary}"
    if verdict.best == LEARNED:
        note = f"filled by learned labels; {shown}; --by grader takes the grader's"
        return LEARNED, verdict.grades, unmapped if request.by else (note,)
    if request.by is None:
        return GRADER, True, ()
    note = f"learned labels are not the best way; {shown}; without --by the grader fills"
    return LEARNED, verdict.grades, (note, *unmapped)


def stated(scores: ScoresSection, rule: RuleName | None, cuts: Mapping[int, int] | None) -> ScaleMap | None:
    """The rule as far as it needs no grades; None where it is to be fitted.

    Args:
        rule: None is "thresholds" where there are cuts, else "fitted".
        cuts: automatic label -> official label, of "thresholds"; none: the track's min_rating (label
            "count": min_answers) -> min_relevant.

    Raises:
        TrecexamError: the cuts are no rule.
    """
    if rule == "identity":
        return scale_map.IDENTITY
    if rule == "fitted" or (rule is None and not cuts):
        return None
    least = scores.min_answers if scores.label == "count" else scores.min_rating
    try:
        return scale_map.thresholds(cuts or {least: scores.min_relevant})
    except ValueError as error:
        raise TrecexamError(f"--map: {error}") from None
