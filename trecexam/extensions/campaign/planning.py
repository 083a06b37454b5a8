"""Makes the plan of a campaign: passages to judge, their order, and their assessors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trecexam.errors import TrecexamError, quoted
from trecexam.extensions.campaign.assessments import asked_items, is_done, opinions_of
from trecexam.extensions.campaign.dividing import divided
from trecexam.extensions.campaign.judge_next.search import Search
from trecexam.extensions.campaign.listed import read_columns
from trecexam.extensions.campaign.plan import JudgingPlan, PlannedTask, read_plan, write_plan
from trecexam.grades.graded_track import GradedTrack
from trecexam.inputs.typed_text import MAX_WHO, typed
from trecexam.results.notes import LOST, Note
from trecexam.results.result import Result
from trecexam.results.table import Table
from trecexam.results.text import plural


@dataclass(frozen=True)
class PlannedCampaign(Result):
    """A plan that was written, and notes: the order, the number of tasks, and the file."""

    plan: JudgingPlan
    notes: tuple[str, ...]

    def _declare(self) -> dict[str, Table]:
        """A row for each assessor; `shared` of the tasks another assessor has, too."""
        rows = (
            (
                name,
                len({row.query_id for row in rows if not row.overlap}),
                len(rows),
                sum(row[1:3] in self.plan.shared for row in rows),
            )
            for name, rows in self.plan.by_assessor.items()
        )
        return {"assessors": Table(("assessor", "topics", "tasks", "shared"), tuple(rows))}


def plan_judging(
    track: GradedTrack,
    assessors: Sequence[str],
    *,
    topics_each: int | None = None,
    overlap: float = 0.0,
    budget: int | None = None,
    passages: Path | str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PlannedCampaign:
    """Divides the passages of the pool among assessors, and writes the plan into judging.tsv."""
    names = tuple(typed("an assessor's name", name, MAX_WHO) for name in assessors)
    _check(names, topics_each, overlap, budget)
    opinions = opinions_of(track)
    judging, scale = track.config.judging, track.judging_scale
    items_by_query = {q: asked_items(judging, scale, items) for q, items in track.bank.items.items()}

    def done(task: PlannedTask) -> bool:
        of_person = opinions.get(task.assessor, {})
        return is_done(of_person, task.query_id, task.doc_id, items_by_query.get(task.query_id, ("",)))

    earlier = read_plan(track.folder)
    done_tasks = [task for task in (earlier.rows if earlier else ()) if done(task)]
    notes: tuple[str, ...] = ()
    if passages is None:
        search = Search(track, with_judged=True)
        ranked: Sequence[tuple[str, ...]] = [
            (row.query_id, row.doc_id) for row in search.ranked(progress=progress)
        ]
        if search.why:
            notes = (f"ordered by the runs alone: {search.why}",)
    else:
        ranked = _listed(track, Path(passages))
    topics = _topics(track, items_by_query, ranked, {task[1:3] for task in done_tasks if not task.overlap})
    plan = divided(topics, names, topics_each=topics_each, overlap=overlap, budget=budget, done=done_tasks)
    if not plan.rows:
        notes = (*notes, "no passage is left to judge (passages with official judgments are not planned)")
    planned_pairs = {row[1:3] for row in plan.rows}
    left_out = sum(
        (query_id, doc_id) not in planned_pairs for query_id, doc_ids in topics.items() for doc_id in doc_ids
    )
    n_rows, n_done = len(plan.rows), len(done_tasks)
    n_passages, n_shared = len(planned_pairs), len(plan.shared)
    shared = "each" if n_shared == n_passages else f"{n_shared:,} of them"
    summary = (
        f"{plural(n_passages, 'passage')}"
        + (f", {shared} for two people" if n_shared else "")
        + f": {plural(n_rows, 'task')} for {plural(len(plan.assessors), 'assessor')}"
        + (f", {n_done:,} done" if n_done else "")
        + (f"; {plural(left_out, 'unjudged passage')} left out" if left_out else "")
    )
    if plan.rows and not _has_texts(track):
        notes = (
            *notes,
            "no passages.jsonl: the page of `trecexam serve` needs it to show the passages; judgments made "
            f"elsewhere come in by `trecexam judge import {quoted(track.folder.root)} FILE`",
        )
    wrote = Note(f"wrote {write_plan(track.folder, plan)}: {summary}", LOST)
    return PlannedCampaign(plan, (*notes, wrote))


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


def _has_texts(track: GradedTrack) -> bool:
    """Return False for a track that needs no texts, and has no passages."""
    return bool(len(track.bank) or track.folder.passages() or track.config.track.dataset)


def _listed(track: GradedTrack, path: Path) -> Sequence[tuple[str, ...]]:
    """Return (query_id, doc_id) of the pooled passages of a list, in its order."""
    pooled = {(query_id, doc_id) for query_id, of in track.pool.items() for doc_id in of.doc_ids}
    rows = read_columns(path, ("query_id", "doc_id"))
    listed = [row for row in rows if row in pooled]
    if not listed:
        raise TrecexamError(f"the pool has none of the file's {plural(len(rows), 'passage')}", path=path)
    return listed


def _topics(
    track: GradedTrack,
    items_by_query: Mapping[str, Sequence[str]],
    ranked: Sequence[tuple[str, ...]],
    done: Collection[tuple[str, str]],
) -> dict[str, list[str]]:
    """Return query_id -> the ranked passages that people have not judged yet, and that are not done."""
    by_query: dict[str, dict[str, None]] = {query_id: {} for query_id in track.bank.query_ids}
    for query_id, doc_id in ranked:
        by_query.get(query_id, {})[doc_id] = None
    counting = {**track.overrides.ratings, **track.judgments.ratings}
    has_texts = _has_texts(track)
    topics: dict[str, list[str]] = {}
    for query_id, ranked_ids in by_query.items():
        sheet, items = track.sheets[query_id], items_by_query[query_id]
        skipped = track.inputs.judged.get(query_id, {}) if "" in items else {}
        # Of passages with one text, the first; all without a text where the track has no passages.
        of_text: dict[str, str] = {}
        for doc_id in (*ranked_ids, *track.pool[query_id].doc_ids):
            of_text.setdefault(sheet.text_of(doc_id) or ("" if has_texts else doc_id), doc_id)
        of_text.pop("", None)
        topics[query_id] = [
            doc_id
            for doc_id in of_text.values()
            if doc_id in ranked_ids
            and doc_id not in skipped
            and (query_id, doc_id) not in done
            and not all((query_id, doc_id, item_id) in counting for item_id in items)
        ]
    return topics
