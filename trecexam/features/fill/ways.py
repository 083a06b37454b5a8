"""By what holes are filled: the grader or learning; and which unless told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from trecexam.config import ScoresSection
from trecexam.errors import TrecexamError
from trecexam.features.fill.arithmetic import scale_map
from trecexam.features.fill.arithmetic.scale_map import RuleName, ScaleMap
from trecexam.features.fill.teaching import GRADER, LABEL, LEARNED, NOTHING, teacher, the_teacher
from trecexam.line.assessment import Assessment
from trecexam.line.official import Official
from trecexam.tables.notes import CHANGES, Note

if TYPE_CHECKING:
    from trecexam.features.fill.filled import FillRequest


#: Higher labels than this are refused, as readers of qrels do.
_DIGITS = 9


def check_request(request: FillRequest) -> None:
    """Refuses a way that there is not.

    Raises:
        TrecexamError: with the options.
    """
    if request.by not in (None, GRADER, LEARNED):
        raise TrecexamError(f"--by {request.by} is unknown: give grader or learned")


def constant_label(method: str) -> int | None:
    """N of the way "label:N"; None of others."""
    parts = re.fullmatch(rf"{LABEL}([0-9]{{1,{_DIGITS}}})", method)
    return None if parts is None else int(parts[1])


def choose_way(track: Assessment, official: Official, request: FillRequest) -> tuple[str, tuple[str, ...]]:
    """By what holes are filled: what is requested, else what the last cross-validation of these judgments
    found best, else the grader.

    Returns:
        "grader" or "learned"; what is to be said of the choice, one per line.

    Raises:
        TrecexamError: nothing is requested, and leaving holes was found best.
    """
    mapped = bool(request.rule or request.cuts)
    if request.by == GRADER or (request.by is None and (mapped or teacher() is None)):
        return GRADER, ()
    verdict = the_teacher().advice(track, official)
    if request.by == LEARNED:
        notes = []
        if verdict.best is None:
            notes.append(
                verdict.why or f"nobody has checked that learned labels are good here: run {verdict.check}"
            )
        elif verdict.best != LEARNED:
            notes.append(f"learned labels are not the best way here; cross-validation: {verdict.summary}")
        if mapped:
            notes.append("learned labels are on the official scale already: --map changes nothing")
        return LEARNED, tuple(Note(line, CHANGES) for line in notes)
    if verdict.best is None:
        return GRADER, (
            (Note(f"{verdict.why}; until then the grader fills", CHANGES),) if verdict.why else ()
        )
    if verdict.best == NOTHING:
        raise TrecexamError(
            "cross-validation here found that leaving holes orders the runs better than filling them "
            f"({verdict.summary}): --by learned or --by grader fills them all the same",
            path=track.folder.root,
        )
    filled = f"filled by {_WHOSE[verdict.best]} labels; cross-validation here: {verdict.summary}"
    return verdict.best, (Note(filled, CHANGES),)


_WHOSE = {LEARNED: "learned", GRADER: "the grader's"}


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
