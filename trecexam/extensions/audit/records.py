"""What the audit reads, and what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.columns import Judged
from trecexam.tables.table import Table

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]
#: Ranks that are looked at. Lists of judged passages alone have as many, from however deep.
DEPTH = 20
#: Level of each test, after Holm's adjustment where there are several: all together raise a false alarm in
#: fewer than 5 of 100 audits.
ALPHA = 0.01
#: A finding of at least this weight is an alarm: a conclusion may be wrong (3), or needs a word in a paper (2).
ALARM = 2


@dataclass(frozen=True, eq=False)
class Side:
    """One set of judgments.

    Attributes:
        name: of its file, without the ending.
        judged: all passages that any side judged, with the labels of this one.
        labels: of all rows: judged passages, then others that runs retrieve, then one that stands for nothing
            (row -1); `UNJUDGED` where this side has no label.
        condensed: rows of shape (runs, queries, DEPTH): the first that this side judged; -1 beyond.
    """

    name: str
    judged: Judged
    labels: Labels
    condensed: Labels

    @cached_property
    def thresholds(self) -> tuple[int, ...]:
        """Labels from 1 on that it gives: from each of them on a passage may count as relevant."""
        return tuple(np.unique(self.judged.labels[self.judged.labels > 0]).tolist())


@dataclass(frozen=True, eq=False)
class AuditInputs:
    """Runs and judgments as arrays.

    Attributes:
        runs: their names.
        teams: of each run its team; the run's own name where none is known.
        has_teams: whether teams were given.
        query_ids: judged by all sides, and retrieved for by some run.
        sides: one or two; the first is the reference.
        rows: shape (runs, queries, DEPTH): the passage at each rank; -1 beyond a list's end.
        cutoff: k of the main measure, nDCG@k.
        judge_rows: shape (queries, cutoff): the judge's own ranking, or None.
        judge_run: its name, or "".
        notes: what was left out, and why.
        rejected: run files that cannot be read, with the reason.
    """

    runs: tuple[str, ...]
    teams: tuple[str, ...]
    has_teams: bool
    query_ids: tuple[str, ...]
    sides: tuple[Side, ...]
    rows: Labels
    cutoff: int = 10
    judge_rows: Labels | None = None
    judge_run: str = ""
    notes: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()

    @cached_property
    def team_codes(self) -> NDArray[np.intp]:
        """Of each run the place of its team in `team_names`."""
        places = {team: place for place, team in enumerate(self.team_names)}
        return np.array([places[team] for team in self.teams], np.intp)

    @cached_property
    def team_names(self) -> tuple[str, ...]:
        """The teams, sorted."""
        return tuple(sorted(set(self.teams)))


@dataclass(frozen=True)
class Finding:
    """What the audit found.

    Attributes:
        section: "scales", "pool", "ranking", "judge" or "sensitivity".
        kind: what is found, in a word or two: "not pooled", "raised" ...
        about: the run, team, set of judgments or measure that it is about; "" for all.
        sentence: says it, with the number.
        number: how much.
        reason: how that is known.
        action: what to do.
        weight: 3: a conclusion may be wrong; 2: a paper has to say it; 1: good to know.
    """

    section: str
    kind: str
    about: str
    sentence: str
    number: float
    reason: str
    action: str
    weight: int


@dataclass(frozen=True)
class Part:
    """A section of the audit.

    Attributes:
        findings: what was found.
        tables: the numbers behind, by name.
    """

    findings: tuple[Finding, ...] = ()
    tables: Mapping[str, Table] = field(default_factory=dict)
