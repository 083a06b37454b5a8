"""Runs and judgments as arrays: the inputs of the audit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.columns import Judged

Floats = NDArray[np.float64]
Rows = NDArray[np.int32]
Bools = NDArray[np.bool_]
#: The depth of the audit.
DEPTH = 20
#: Level of each test, Holm's adjustment included: together they raise few false alarms.
ALPHA = 0.01


@dataclass(frozen=True, eq=False)
class Side:
    """One set of judgments.

    Attributes:
        name: of its file, without the ending.
        judged: all passages that any side judged, with the labels of this one.
        labels: of all rows: judged passages, then others that runs retrieve, then one that means nothing
            (row -1); `UNJUDGED` where this side has no label.
    """

    name: str
    judged: Judged
    labels: Rows

    @cached_property
    def thresholds(self) -> tuple[int, ...]:
        """Return the lowest five labels from 1 on: a passage may count as relevant from each of them on."""
        return tuple(np.unique(self.judged.labels[self.judged.labels > 0])[:5].tolist())


@dataclass(frozen=True, eq=False)
class AuditInputs:
    """Runs and judgments as arrays.

    Attributes:
        runs: their names.
        teams: of each run its team; the run's own name where none is known.
        query_ids: judged by all sides, and retrieved for by some run.
        sides: one or two; the first is the reference.
        rows: shape (runs, queries, DEPTH): the passage at each rank; -1 beyond a list's end.
        cutoff: k of the main measure, nDCG@k.
        judge_run: the name of the judge's own ranking, and its rows, shape (queries, DEPTH); or None.
        notes: what was left out, and why.
        rejected: run files that cannot be read, with the reason.
        larger: the name of the side that contains all labels of the other; "" where neither does.
    """

    runs: tuple[str, ...]
    teams: tuple[str, ...]
    query_ids: tuple[str, ...]
    sides: tuple[Side, ...]
    rows: Rows
    cutoff: int = 10
    judge_run: tuple[str, Rows] | None = None
    notes: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    larger: str = ""
