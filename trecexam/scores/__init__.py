"""Scores from ratings: labels, Rubric-Cover, evaluation, leaderboards, correlation.

Knows no grader, no store and no file format. Importing this package is cheap: `Cover`, `nCover`, `ECover` and
the other names below are loaded at their first use, and using one of these three registers them with
`ir_measures`:

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
    from trecexam.scores.correlation import Correlation, correlate
    from trecexam.scores.evaluate import OfficialJudgments, RubricJudgments
    from trecexam.scores.labels import RubricQrel
    from trecexam.scores.leaderboard import Leaderboard
    from trecexam.scores.ratings import QueryRatings

__all__ = [
    "Correlation",
    "Cover",
    "ECover",
    "Leaderboard",
    "OfficialJudgments",
    "QueryRatings",
    "RubricJudgments",
    "RubricQrel",
    "correlate",
    "nCover",
]

_HOME = {
    "Correlation": "correlation",
    "Cover": "columns",
    "ECover": "columns",
    "Leaderboard": "leaderboard",
    "OfficialJudgments": "evaluate",
    "QueryRatings": "ratings",
    "RubricJudgments": "evaluate",
    "RubricQrel": "labels",
    "correlate": "correlation",
    "nCover": "columns",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
