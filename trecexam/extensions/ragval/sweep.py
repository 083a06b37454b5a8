"""Systems along a parameter that was swept: chunk size, passages shown, temperature."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trecexam.extensions.ragval.judged_scores import System


@dataclass(frozen=True)
class Point:
    """A system at its value of the parameter.

    Attributes:
        value: as the file has it.
        x: the same as a number; where one value of the sweep is none, its place among all values.
        series: what systems that differ in the parameter alone have in common; "" where nothing is known.
    """

    system: System
    value: str
    x: float
    series: str


@dataclass(frozen=True)
class Sweep:
    """Systems along a parameter.

    Attributes:
        numeric: all values are numbers.
        points: by series, then rising value; texts stand in their order.
        left_out: systems without a value.
    """

    parameter: str
    numeric: bool
    points: tuple[Point, ...]
    left_out: tuple[str, ...]


def swept(
    parameter: str, systems: Sequence[System], values: Mapping[str, str], series: Mapping[str, str]
) -> Sweep:
    """The systems along a parameter.

    Args:
        values: run -> its value.
        series: run -> what else is known of it.
    """
    numbers = {value: _number(value) for value in values.values()}
    numeric = not any(map(math.isnan, numbers.values()))
    if not numeric:
        numbers = {value: float(place) for place, value in enumerate(sorted(numbers))}
    points = [
        Point(system, values[system.run_id], numbers[values[system.run_id]], series.get(system.run_id, ""))
        for system in systems
        if system.run_id in values
    ]
    points.sort(key=lambda point: (point.series, point.x, point.system.run_id))
    left_out = tuple(system.run_id for system in systems if system.run_id not in values)
    return Sweep(parameter, numeric, tuple(points), left_out)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan
