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
#: Level of each test, after Holm's adjustment.
ALPHA = 0.01


@dataclass(frozen=True, eq=False)
class Side:
    """A set of judgments.

    Attributes:
        name: file name without suffix.
        judged: all passages judged by any side, with this side's labels.
        labels: labels of all rows: judged passages, other retrieved passages, and a last dummy (row -1);
            `UNJUDGED` where this side has no label.
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
        runs: names of the runs.
        teams: team of each run; the run's own name if unknown.
        query_ids: queries judged by all sides and present in some run.
        sides: one or two; the first is the reference.
        rows: shape (runs, queries, DEPTH): the passage at each rank; -1 beyond a list's end.
        cutoff: k of the main measure, nDCG@k.
        judge_run: the name of the judge's own ranking, and its rows, shape (queries, DEPTH); or None.
        notes: skipped inputs, with reasons.
        rejected: unreadable run files, with reasons.
        larger: the name of the side that contains all labels of the other; "" if neither does.
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
