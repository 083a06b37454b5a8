"""Progress of assessors with a campaign's plan, and time per judgment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from converters.records import HumanRating
from trecexam.extensions.campaign.assessments import CellKey, asked_items, is_done, opinions_of
from trecexam.extensions.campaign.plan import JudgingPlan, PlannedTask, read_plan
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.result import Result
from trecexam.results.table import Layout, Table


class ProgressRow(NamedTuple):
    """An assessor's work on a topic, or with query_id "" on all.

    Attributes:
        tasks: passages in the plan, overlap included; `done` and `left` of these.
        judgments: of cells of these passages; of a passage there may be several.
        cannot: how many of them say that it cannot be judged.
        median_seconds: of active work on a judgment, of those that were timed; None where none was.
        per_hour: judgments in an hour of active work, by the timed ones; None where none was.
    """

    assessor: str
    query_id: str
    tasks: int
    done: int
    left: int
    judgments: int
    cannot: int
    median_seconds: float | None
    per_hour: float | None


@dataclass(frozen=True)
class Progress(Result):
    """Progress of a campaign.

    Attributes:
        topics: a row for each assessor and topic, in the order of the plan.
        assessors: a row for each assessor.
    """

    topics: tuple[ProgressRow, ...]
    assessors: tuple[ProgressRow, ...]

    def _declare(self) -> dict[str, Table]:
        """`assessors`, a row for each; `topics`, a row for each assessor and topic."""
        header = tuple(name for name in ProgressRow._fields if name != "query_id")
        rows = tuple((row.assessor, *row[2:]) for row in self.assessors)
        assessors = Table(header, rows, layout=Layout(("assessor",)))
        topics = Table(ProgressRow._fields, self.topics, layout=Layout(("assessor", "query_id")))
        return {"assessors": assessors, "topics": topics}


def judging_progress(track: GradedTrack) -> Progress:
    """Return each assessor's progress with the track's plan; empty without a plan.

    Raises:
        TrecexamError: the plan cannot be read.
    """
    plan, opinions = read_plan(track.folder) or JudgingPlan(()), opinions_of(track)
    judging, scale = track.config.judging, track.judging_scale
    items_by_query = {q: asked_items(judging, scale, items) for q, items in track.bank.items.items()}
    topics, assessors = [], []
    for name, tasks in plan.by_assessor.items():
        by_topic: dict[str, list[PlannedTask]] = {}
        for task in tasks:
            by_topic.setdefault(task.query_id, []).append(task)
        of_person = opinions.get(name, {})
        topics += [_row(name, q, rows, of_person, items_by_query) for q, rows in by_topic.items()]
        assessors.append(_row(name, "", tasks, of_person, items_by_query))
    return Progress(tuple(topics), tuple(assessors))


def _row(
    name: str,
    query_id: str,
    tasks: Iterable[PlannedTask],
    opinions: Mapping[CellKey, HumanRating],
    items_by_query: Mapping[str, Sequence[str]],
) -> ProgressRow:
    done, n_tasks = 0, 0
    judgments: list[HumanRating] = []
    for task in tasks:
        items = items_by_query.get(task.query_id, ("",))
        keys = dict.fromkeys(CellKey(task.query_id, task.doc_id, item_id) for item_id in (*items, ""))
        judgments += [opinions[key] for key in keys if key in opinions]
        done += is_done(opinions, task.query_id, task.doc_id, items)
        n_tasks += 1
    seconds = [row.seconds for row in judgments if row.seconds is not None]
    return ProgressRow(
        name,
        query_id,
        n_tasks,
        done,
        n_tasks - done,
        len(judgments),
        sum(row.cannot for row in judgments),
        median(seconds) if seconds else None,
        3600 * len(seconds) / sum(seconds) if sum(seconds) else None,
    )
