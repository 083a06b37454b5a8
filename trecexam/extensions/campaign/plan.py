"""The plan of a campaign, `judging.tsv`: passages for each assessor, in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from trecexam.errors import TrecexamError
from trecexam.extensions.campaign.tables import read_columns
from trecexam.files import atomic
from trecexam.files.stamps import Stamp, stamp
from trecexam.folder import TrackFolder
from trecexam.inputs.typed_text import refuse_controls

PLAN = "judging.tsv"
COLUMNS = ("assessor", "query_id", "doc_id", "task")
OWN, OVERLAP = "own", "overlap"


class PlannedTask(NamedTuple):
    """A passage for an assessor to judge, as a whole or item by item. `overlap`: a second judgment of another
    assessor's passage, to measure agreement.
    """

    assessor: str
    query_id: str
    doc_id: str
    overlap: bool = False


#: Assessor -> tasks in the order of judging, without duplicates.
JudgingPlan = Mapping[str, Sequence[PlannedTask]]


def read_plan(folder: TrackFolder) -> JudgingPlan | None:
    """Return the track's plan, cached until the file changes; None without a plan.

    Raises:
        TrecexamError: an unreadable line, with its number.
    """
    path = folder.root / PLAN
    current = stamp(path)
    return None if current is None else _read(path, current)


@lru_cache(maxsize=8)
def _read(path: Path, current: Stamp) -> JudgingPlan:
    rows: dict[tuple[str, ...], PlannedTask] = {}
    for number, (assessor, query_id, doc_id, task) in read_columns(path, COLUMNS):
        if task not in (OWN, OVERLAP):
            raise TrecexamError(f"the task is not own or overlap: '{task[:40]}'", path=path, line=number)
        row = PlannedTask(assessor, query_id, doc_id, task == OVERLAP)
        if row[:3] in rows:
            raise TrecexamError(f"{assessor} has '{doc_id}' twice; keep one", path=path, line=number)
        rows[row[:3]] = row
    return by_assessor(rows.values())


def by_assessor(rows: Iterable[PlannedTask]) -> dict[str, list[PlannedTask]]:
    """Return the plan of these tasks."""
    plan: dict[str, list[PlannedTask]] = {}
    for row in rows:
        plan.setdefault(row.assessor, []).append(row)
    return plan


def write_plan(folder: TrackFolder, rows: Sequence[PlannedTask]) -> Path:
    """Write the track's plan, replacing an existing one.

    Raises:
        TrecexamError: the file cannot be written, or an id contains a tab or a control character.
    """
    lines = (COLUMNS, *((*row[:3], OVERLAP if row.overlap else OWN) for row in rows))
    for row in rows:
        for text in row[:3]:
            refuse_controls(f"an id in {PLAN}", text)
    path = folder.root / PLAN
    atomic.replace(path, "".join("\t".join(line) + "\n" for line in lines).encode())
    return path
