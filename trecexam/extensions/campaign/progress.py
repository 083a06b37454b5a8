"""Progress of assessors with a campaign's plan, and time per judgment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from converters.records import HumanRating
from trecexam.extensions.campaign.assessments import CellKey, asked_by_query, is_done, opinions_of
from trecexam.extensions.campaign.plan import PlannedTask, read_plan
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.result import Tables
from trecexam.results.table import Layout, Table, Value

#: `judgments` of cells, of a passage there may be several, and how many of them say that it cannot be judged;
#: seconds of active work on a judgment, and judgments in an hour of it, of those that were timed.
_COLUMNS = ("tasks", "done", "left", "judgments", "cannot", "median_seconds", "per_hour")


def judging_progress(track: GradedTrack) -> Tables:
    """Return each assessor's work on the track's plan, in total and by topic; empty without a plan.

    Raises:
        TrecexamError: the plan cannot be read.
    """
    plan, opinions = read_plan(track.folder) or {}, opinions_of(track)
    items_by_query = asked_by_query(track)
    topics: list[tuple[Value, ...]] = []
    assessors: list[tuple[Value, ...]] = []
    for name, tasks in plan.items():
        of_person = opinions.get(name, {})
        for query_id in dict.fromkeys(task.query_id for task in tasks):
            of_topic = [task for task in tasks if task.query_id == query_id]
            topics.append((name, query_id, *_work(of_topic, of_person, items_by_query)))
        assessors.append((name, *_work(tasks, of_person, items_by_query)))
    keys, of_topics = ("assessor", "query_id"), "Each assessor's topics"
    return Tables(
        {
            "assessors": Table((*keys[:1], *_COLUMNS), tuple(assessors), layout=Layout(keys[:1])),
            "topics": Table((*keys, *_COLUMNS), tuple(topics), layout=Layout(keys), caption=of_topics),
        }
    )


def _work(
    tasks: Sequence[PlannedTask],
    opinions: Mapping[CellKey, HumanRating],
    items_by_query: Mapping[str, Sequence[str]],
) -> tuple[Value, ...]:
    """Return the values of `_COLUMNS` for some tasks of a person."""
    done, judgments = 0, []
    for task in tasks:
        items = items_by_query.get(task.query_id, ("",))
        keys = dict.fromkeys(CellKey(task.query_id, task.doc_id, item_id) for item_id in (*items, ""))
        judgments += [opinions[key] for key in keys if key in opinions]
        done += is_done(opinions, task.query_id, task.doc_id, items)
    seconds = [row.seconds for row in judgments if row.seconds is not None]
    return (
        *(len(tasks), done, len(tasks) - done, len(judgments), sum(row.cannot for row in judgments)),
        median(seconds) if seconds else None,
        3600 * len(seconds) / sum(seconds) if sum(seconds) else None,
    )
