"""What an update says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trecexam.files.stamps import Rejected
from trecexam.line.sheets import Counts
from trecexam.outputs.history import MovedRun


@dataclass(frozen=True)
class Update:
    """What an update did.

    Attributes:
        changed: False where nothing was new and nothing was done.
        graded: cells graded now.
        runs: runs on the leaderboard.
        counts: the pool's cells by what became of them.
        rejected: inputs that were rejected.
        complete: False where it ended before all cells were asked for.
        why: what ended it; "" where it was stopped.
        cautions: what one must know to read the leaderboard, one per line.
        cut: texts whose end was cut, as they were too long for the model; as far as the grader counts them.
        written: output files that changed.
        notes: warnings about accepted inputs, one per line; () where nothing was new.
        moved: runs whose rank or mean changed, as the update added them to out/history.tsv; of a track with
            several graders, `graders` has them.
        graders: of a track that has several, what each one's update did; the others sum these up.
    """

    changed: bool
    graded: int
    runs: int
    counts: Counts
    rejected: tuple[Rejected, ...]
    complete: bool
    written: tuple[Path, ...]
    moved: tuple[MovedRun, ...] = ()
    why: str = ""
    cut: int = 0
    cautions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    graders: Mapping[str, Update] = field(default_factory=dict)
