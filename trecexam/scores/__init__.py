"""Scores from ratings: labels, Rubric-Cover, evaluation, leaderboards, correlation.

Knows no grader, no store and no file format. Importing this package is cheap: its names are loaded at their
first use. Using `Cover`, `nCover` or `ECover` registers them with `ir_measures`:

    >>> import ir_measures
    >>> from ir_measures import nDCG
    >>> from trecexam.scores import Cover
    >>> ir_measures.calc_aggregate([nDCG@10, Cover(rel=4)@20], qrels, run)  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trecexam.scores.columns import Cover, ECover, nCover
    from trecexam.scores.correlation import Correlation
    from trecexam.scores.labels import RubricQrel
    from trecexam.scores.leaderboard import Leaderboard

__all__ = ["Correlation", "Cover", "ECover", "Leaderboard", "RubricQrel", "nCover"]

_HOME = {"Correlation": "correlation", "Leaderboard": "leaderboard", "RubricQrel": "labels"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME.get(name, 'columns')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
