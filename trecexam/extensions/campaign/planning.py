"""Makes the plan of a campaign: passages to judge, their order, and their assessors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from converters.records import judgment
from trecexam.errors import TrecexamError
from trecexam.extensions.campaign.assessments import CellKey, asked_items, is_done, opinions_of
from trecexam.extensions.campaign.dividing import Topic, divided
from trecexam.extensions.campaign.judge_next.next_judgments import next_judgments
from trecexam.extensions.campaign.listed import read_listed
from trecexam.extensions.campaign.plan import JudgingPlan, PlannedTask, read_plan, write_plan
from trecexam.line.loaded_track import of_documents
from trecexam.line.typed_text import MAX_WHO, typed
from trecexam.scores.retrieved import retrieved_weights
from trecexam.tables.result import Result
from trecexam.tables.table import Table
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment

#: What passages of a topic may be ordered by.
Order = Literal["change", "retrieved"]


@dataclass(frozen=True)
class PlannedCampaign(Result):
    """A plan that was written.

    Attributes:
        n_done: how many of its tasks are done already.
        n_left_out: passages without a judgment that are in no task.
        by: what passages of a topic are ordered by, "listed" for a list of passages.
        notes: what a reader must know, how many tasks there are, and where.
    """

    plan: JudgingPlan
    path: Path
    n_done: int
    n_left_out: int
    by: Order | Literal["listed"]
    notes: tuple[str, ...]

    @property
    def summary(self) -> str:
        """A line with the numbers of passages and tasks."""
        rows, n_people = self.plan.rows, len(self.plan.assessors)
        twice = sum(row.overlap for row in rows)
        for_two = f", {twice:,} of them for two people" if twice else ""
        done = f", {self.n_done:,} done" if self.n_done else ""
        left_out = f"; {plural(self.n_left_out, 'unjudged passage')} left out" if self.n_left_out else ""
        return (
            f"{plural(len(rows) - twice, 'passage')}{for_two} "
            f"({plural(len(rows), 'task')}, {plural(n_people, 'assessor')}{done}){left_out}"
        )

    def declare(self) -> dict[str, Table]:
        """A row for each assessor."""
        rows = (
            (
                name,
                len({row.query_id for row in rows if not row.overlap}),
                len(rows),
                sum(row.overlap for row in rows),
            )
            for name, rows in self.plan.by_assessor.items()
        )
        return {"assessors": Table(("assessor", "topics", "tasks", "overlap"), tuple(rows))}


@of_documents
def plan_judging(
    track: Assessment,
    assessors: Sequence[str],
    *,
    topics_each: int | None = None,
    overlap: float = 0.0,
    budget: int | None = None,
    by: Order | None = None,
    passages: Path | str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PlannedCampaign:
    """Divides the passages of the pool among assessors, and writes the plan into judging.tsv.

    A task is a pooled passage (with `unit = "response"` a whole response) with all its items,
    see `asked_items`. A topic stays with one assessor, and all have much the same number of tasks. What is
    judged already is in no new task: by people here, or, where passages are judged as a whole, officially.
    Of passages with one text one is judged.

    A plan with finished work is kept as far as it goes, see `divided`; else it is made anew. The same
    arguments give the same plan.

    Args:
        assessors: their names, at least one.
        topics_each: topics of each assessor at the most.
        overlap: the share of tasks, 0..1, drawn at random, that a second assessor gets, too.
        budget: tasks in all, the overlap counted twice; evenly over topics.
        by: the order within a topic: "change" as of `judge_next`, what that does not list after it;
            "retrieved": by how many runs and how high. None: by change where there are grades and a second
            run, else by retrieved.
        passages: only those of this table with the columns query_id and doc_id, as `settle` and
            `learned-next` write it; without `by` in its order.
        progress: of `judge_next`.

    Raises:
        TrecexamError: arguments that do not go together, an order that cannot be computed, a plan that cannot
            be read or written, a list that cannot be read or has none of the pooled passages.
    """
    names = tuple(typed("an assessor's name", name, MAX_WHO) for name in assessors)
    _check(names, topics_each, overlap, budget)
    opinions = opinions_of(track)
    items_by_query = {q: asked_items(track.config.judging, items) for q, items in track.bank.items.items()}

    def done(task: PlannedTask) -> bool:
        of_person = opinions.get(task.assessor, {})
        return is_done(of_person, task.query_id, task.doc_id, items_by_query.get(task.query_id, ("",)))

    earlier = read_plan(track.folder)
    listed = None if passages is None else _listed(track, Path(passages))
    order, ranks, notes = _places(track, by, listed, progress)
    topics = _topics(track, items_by_query, ranks, listed)
    plan = divided(
        topics, names,
        topics_each=topics_each, overlap=overlap, budget=budget, earlier=earlier, is_done=done,
    )  # fmt: skip
    if not plan.rows:
        notes = (*notes, "no passage is left to judge (passages with official judgments are not planned)")
    planned_pairs = {row[1:3] for row in plan.rows}
    left_out = sum(
        (topic.query_id, doc_id) not in planned_pairs for topic in topics for doc_id in topic.doc_ids
    )
    path = write_plan(track.folder, plan)
    planned = PlannedCampaign(plan, path, sum(map(done, plan.rows)), left_out, order, notes)
    return replace(planned, notes=(*notes, f"wrote {path}: {planned.summary}"))


def _check(names: Sequence[str], topics_each: int | None, overlap: float, budget: int | None) -> None:
    if not names:
        raise TrecexamError("name the assessors who judge")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice or not all(names):
        raise TrecexamError(
            f"assessor '{twice[0]}' is named twice" if all(names) else "an assessor has no name"
        )
    for what, number in (("topics_each", topics_each), ("budget", budget)):
        if number is not None and number < 1:
            raise TrecexamError(f"{what} = {number}: at least 1")
    if not 0 <= overlap <= 1:
        raise TrecexamError(f"overlap = {overlap:g}: from 0 to 1")
    if overlap and len(names) == 1:
        raise TrecexamError("an overlap needs a second assessor")


def _listed(track: Assessment, path: Path) -> dict[tuple[str, str], None]:
    """(query_id, doc_id) of the pooled passages of a list, in its order."""
    pooled = {(query_id, doc_id) for query_id, of in track.pool.items() for doc_id in of.doc_ids}
    rows = read_listed(path)
    listed = dict.fromkeys(row for row in rows if row in pooled)
    if not listed:
        raise TrecexamError(f"the pool has none of the file's {plural(len(rows), 'passage')}", path=path)
    return listed


def _places(
    track: Assessment,
    by: Order | None,
    listed: Collection[tuple[str, str]] | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[Order | Literal["listed"], dict[str, dict[str, int]], tuple[str, ...]]:
    """query_id -> doc_id -> position in the order of judging, and notes."""
    if by is not None and by not in get_args(Order):
        raise TrecexamError(f"by = '{by}': {', '.join(get_args(Order))}")
    notes: tuple[str, ...] = ()
    order: Order | Literal["listed"] = by or "listed"
    if by is None and listed is None:
        order = "change" if len(track.runs) > 1 and track.counts.ok else "retrieved"
        if order == "retrieved":
            notes = (
                "ordered by the runs alone: nothing is graded yet, or the track has fewer than two runs",
            )
    ranks: dict[str, dict[str, int]] = {query_id: {} for query_id in track.bank.query_ids}
    pairs = list(listed or ()) if order == "listed" else []
    if order == "change":
        level: Literal["passage"] | None = None if track.config.judging.scale is None else "passage"
        following = next_judgments(track, level=level, by=order, progress=progress)
        pairs = [(row.query_id, row.doc_id) for row in following.rows]
    for query_id, doc_id in pairs:
        if query_id in ranks:
            ranks[query_id].setdefault(doc_id, len(ranks[query_id]))
    return order, ranks, notes


def _topics(
    track: Assessment,
    items_by_query: Mapping[str, Sequence[str]],
    ranks: Mapping[str, Mapping[str, int]],
    listed: Collection[tuple[str, str]] | None,
) -> list[Topic]:
    officially: dict[str, set[str]] = {}
    for row in track.official or ():
        if judgment(row.relevance) is not None:
            officially.setdefault(row.query_id, set()).add(row.doc_id)
    counting = {**track.overrides.ratings, **track.judgments.ratings}
    topics = []
    for query_id, rank_of in ranks.items():
        pooled, sheet, items = track.pool[query_id], track.sheets[query_id], items_by_query[query_id]
        skipped = officially.get(query_id, set()) if "" in items else set()
        weights = retrieved_weights(pooled.ranks, len(pooled.doc_ids)).tolist()
        by_weight = sorted(zip(pooled.doc_ids, weights, strict=True), key=lambda row: -row[1])
        eligible = {doc_id for doc_id in pooled.doc_ids if listed is None or (query_id, doc_id) in listed}
        # Of one text the first id, whatever the order is by.
        first: dict[str, str] = {}
        for doc_id in sorted(pooled.doc_ids, key=lambda doc_id: doc_id not in eligible):
            first.setdefault(sheet.text_of(doc_id) or "", doc_id)
        usable = [
            doc_id
            for doc_id, _ in sorted(by_weight, key=lambda row: rank_of.get(row[0], len(rank_of)))
            if sheet.text_of(doc_id)
            and first[sheet.text_of(doc_id) or ""] == doc_id
            and doc_id not in skipped
        ]
        unjudged = tuple(
            doc_id
            for doc_id in usable
            if doc_id in eligible
            and not all((*CellKey(query_id, doc_id, item_id),) in counting for item_id in items)
        )
        if usable:
            topics.append(Topic(query_id, unjudged, frozenset(usable)))
    return topics
