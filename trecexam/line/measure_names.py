"""Measures as people give them from Python: a name, or an ir_measures.Measure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ir_measures

    MeasureLike = str | ir_measures.Measure


def names_of(measures: Sequence[object] | None) -> list[str] | None:
    """The measures' names, as ir_measures prints them; None for None.

    Raises:
        ValueError: it is a measure, not several; or there is none.
    """
    if isinstance(measures, str) or not isinstance(measures, Iterable | None):
        raise ValueError(f"measures: give a list, as [{measures!r}]")
    names = None if measures is None else [str(measure) for measure in measures]
    if names == []:
        raise ValueError("measures: name at least one, or None for the track's own")
    return names
