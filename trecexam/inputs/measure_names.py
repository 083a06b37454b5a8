"""Measures as people give them from Python: a name, or an ir_measures.Measure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import ir_measures

MeasureLike: TypeAlias = "str | ir_measures.Measure"
Measures: TypeAlias = "MeasureLike | Sequence[MeasureLike]"


def listed(measures: Measures | None) -> list[MeasureLike] | None:
    """Return one or several measures as a list, each as it was given; None for None.

    Raises:
        ValueError: the list is empty.
    """
    if measures is None:
        return None
    several = [measures] if isinstance(measures, str) or not isinstance(measures, Iterable) else [*measures]
    if not several:
        raise ValueError("measures: name at least one, or None for the track's own")
    return several


def names_of(measures: Measures | None) -> list[str] | None:
    """Return the names of one or several measures, as ir_measures prints them; None for None.

    Raises:
        ValueError: the list is empty.
    """
    each = listed(measures)
    return None if each is None else [str(measure) for measure in each]
