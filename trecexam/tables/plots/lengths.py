"""Lengths as people give them: 3.3in, 8.4cm, 241pt, or a column of a paper."""

from __future__ import annotations

import re

#: Inches. TeX's point is what \the\columnwidth prints.
UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}
#: Of acmart's sigconf, in which most papers of the field are set: a column, and both with the room between.
COLUMNS = {"single": 3.33, "double": 7.0}
#: Inches that a plot may be wide or high.
LEAST, MOST = 1.0, 40.0


def inches(length: str | float) -> float:
    """A length in inches; a number is inches already.

    Raises:
        ValueError: it is no length, or not one of a figure.
    """
    if isinstance(length, str) and length.strip() in COLUMNS:
        return COLUMNS[length.strip()]
    if isinstance(length, str):
        match = re.fullmatch(r"\s*(\d{1,6}(?:\.\d{1,9})?|\.\d{1,9})\s*(in|cm|mm|pt)\s*", length, re.ASCII)
        if match is None:
            raise ValueError(
                f"{length}: give a length with its unit, as 3.3in, 8.4cm, 84mm or 241pt, or single or double"
            )
        value = float(match[1]) * UNITS[match[2]]
    else:
        value = float(length)
    if not LEAST <= value <= MOST:
        raise ValueError(f"{length}: a plot is {LEAST:g}in to {MOST:g}in wide and high")
    return value
