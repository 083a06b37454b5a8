"""The rule that people asked for, from automatic labels to official ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError
from trecexam.features.fill.arithmetic import scale_map

if TYPE_CHECKING:
    from trecexam.config import ScoresSection
    from trecexam.features.fill.arithmetic.scale_map import RuleName, ScaleMap


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
        raise TrecexamError(f"--thresholds: {error}") from None
