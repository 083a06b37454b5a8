"""Comparison of texts with numbers that a model or an optimiser made."""

from __future__ import annotations

import re

_FLOAT = re.compile(r"(?<![\w.])-?\d+\.\d+(e[-+]?\d+)?(?![\w.])")


def near(one: str, other: str, tolerance: float = 0.011) -> bool:
    """Return True for texts with the same words, and numbers with a point that differ by no more.

    The default is one unit of the second digit: learned gains are printed with two.
    """
    numbers = zip(_FLOAT.finditer(one), _FLOAT.finditer(other), strict=False)
    return _FLOAT.sub("N", one) == _FLOAT.sub("N", other) and all(
        abs(float(a[0]) - float(b[0])) <= tolerance for a, b in numbers
    )
