"""The measures, a file per family: pure functions from a run's hits to a value per query.

Each file has `MEASURES`, what it declares: a `ColumnMeasure` for each measure that it computes. Nothing else
names it.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from trecexam.scores.columns.measures.base import ColumnMeasure


def _declared() -> dict[str, ColumnMeasure]:
    names = sorted(name for _, name, _ in pkgutil.iter_modules(__path__, f"{__name__}."))
    declared = [each for name in names for each in getattr(import_module(name), "MEASURES", ())]
    return {each.name: each for each in sorted(declared, key=lambda each: each.name)}


#: By the measures' names, as ir_measures has them.
MEASURES: dict[str, ColumnMeasure] = _declared()
