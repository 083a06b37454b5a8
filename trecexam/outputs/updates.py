"""Result of an update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from trecexam.files.stamps import Rejected
from trecexam.folder import TrackFolder
from trecexam.grades.sheets import Counts
from trecexam.inputs.inputs import merge_rejected
from trecexam.outputs.history import MovedRun
from trecexam.results.notes import each_once, of_grader


@dataclass(frozen=True)
class Update:
    """Result of an update.

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


def add_updates(folder: TrackFolder, updates: Mapping[str, Update]) -> Update:
    """Add up the updates of several graders; a line begins with the names of the graders that have it.

    Args:
        folder: of the track.
        updates: by grader.
    """
    every = updates.values()
    counts = {of.name: sum(getattr(each.counts, of.name) for each in every) for of in fields(Counts)}
    return Update(
        changed=any(each.changed for each in every),
        graded=sum(each.graded for each in every),
        runs=max((each.runs for each in every), default=0),
        counts=Counts(**counts),
        rejected=merge_rejected(folder, {name: each.rejected for name, each in updates.items()}),
        complete=all(each.complete for each in every),
        written=tuple(dict.fromkeys(path for each in every for path in each.written)),
        why="; ".join(f"{name} ended early: {each.why}" for name, each in updates.items() if each.why),
        cut=sum(each.cut for each in every),
        cautions=tuple(each_once({name: each.cautions for name, each in updates.items()}, of_grader)),
        notes=tuple(each_once({name: each.notes for name, each in updates.items()}, of_grader)),
        graders=updates,
    )
