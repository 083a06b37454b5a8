"""Measures as people give them from Python: a name, or an ir_measures.Measure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ir_measures

    MeasureLike = str | ir_measures.Measure


def names_of(measures: Sequence[MeasureLike] | None) -> list[str] | None:
    """The measures' names, as ir_measures prints them; None for None."""
    return None if measures is None else [str(measure) for measure in measures]
