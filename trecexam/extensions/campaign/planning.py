"""Make the plan of a campaign: passages to judge, their order, and their assessors."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trecexam.errors import TrecexamError, quoted
from trecexam.extensions.campaign.assessments import asked_by_query, counting, is_done, opinions_of
from trecexam.extensions.campaign.judge_next.next_judgments import suggestions
from trecexam.extensions.campaign.plan import JudgingPlan, PlannedTask, read_plan, write_plan
from trecexam.extensions.campaign.tables import read_columns
from trecexam.grades.diagnostics import NO_RUNS
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
    """Divide the passages of the pool among assessors, and writes the plan into judging.tsv."""
    names = tuple(typed("an assessor's name", name, MAX_WHO) for name in assessors)
    _check(names, topics_each, overlap, budget)
    opinions, items_by_query = opinions_of(track), asked_by_query(track)

    def done(task: PlannedTask) -> bool:
        of_person = opinions.get(task.assessor, {})
        return is_done(of_person, task.query_id, task.doc_id, items_by_query.get(task.query_id, ("",)))

    earlier = read_plan(track.folder)
    done_tasks = [task for task in (earlier.rows if earlier else ()) if done(task)]
    notes: tuple[str, ...] = ()
    if passages is None:
        suggested, _, why = suggestions(track, progress=progress, with_judged=True)
        ranked: Sequence[tuple[str, ...]] = [(row.query_id, row.doc_id) for row in suggested]
        if why:
            notes = (f"ordered by the runs alone: {why}",)
    else:
        ranked = _listed(track, Path(passages))
    topics = _topics(track, items_by_query, ranked, {task[1:3] for task in done_tasks if not task.overlap})
    plan = divided(topics, names, topics_each=topics_each, overlap=overlap, budget=budget, done=done_tasks)
    if not plan.rows and not track.runs:
        raise TrecexamError(NO_RUNS, path=track.folder.runs)
    if not plan.rows:
        of_whole = any("" in items and track.inputs.judged.get(q) for q, items in items_by_query.items())
        why = " (passages with official judgments are not planned)" if of_whole else ""
        notes = (*notes, f"no passage is left to judge{why}")
    planned = {row[1:3] for row in plan.rows}
    left_out = sum((query_id, doc_id) not in planned for query_id in topics for doc_id in topics[query_id])
    n_shared = len(plan.shared)
    shared = "each" if n_shared == len(planned) else f"{n_shared:,} of them"
    summary = (
        f"{plural(len(planned), 'passage')}"
        + (f", {shared} for two people" if n_shared else "")
        + f": {plural(len(plan.rows), 'task')} for {plural(len(plan.assessors), 'assessor')}"
        + (f", {len(done_tasks):,} done" if done_tasks else "")
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
    if not all(names):
        raise TrecexamError("an assessor has no name")
    for name in names:
        if names.count(name) > 1:
            raise TrecexamError(f"assessor '{name}' is named twice")
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
    listed = [row for _, row in rows if row in pooled]
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
    judged, has_texts = counting(track), _has_texts(track)
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
            and not all((query_id, doc_id, item_id) in judged for item_id in items)
        ]
    return topics


def divided(
    topics: Mapping[str, Sequence[str]],
    assessors: Sequence[str],
    *,
    topics_each: int | None = None,
    overlap: float = 0.0,
    budget: int | None = None,
    done: Sequence[PlannedTask] = (),
) -> JudgingPlan:
    """Return a plan with each topic for one assessor, about equal work for all, and an overlap of tasks.

    What is done stays, and a topic stays with the assessor who began it, if she is named. The same arguments
    give the same plan.

    Args:
        topics: query_id -> the passages to judge, the first to judge first; none that is in `done`.
        topics_each, overlap, budget: as of `JudgingAccessor.plan`.
        done: finished tasks of an earlier plan.
    """
    most = topics_each or max(len(topics), len(done))
    own_done = [row for row in done if not row.overlap]
    begun: dict[str, list[str]] = {}
    owners: dict[str, str] = {}
    for name, query_id, doc_id, _ in own_done:
        if query_id not in owners and name in assessors and Counter(owners.values())[name] < most:
            owners[query_id] = name
        if owners.get(query_id) == name:
            begun.setdefault(query_id, []).append(doc_id)
    left = {row.query_id for row in own_done}
    free = [query_id for query_id, doc_ids in topics.items() if doc_ids and query_id not in owners]
    free.sort(key=lambda query_id: (query_id not in left, _draw(query_id)))
    free = free[: max(0, most * len(assessors) - len(owners))]
    ids = [
        query_id for query_id in dict.fromkeys((*topics, *begun)) if query_id in owners or query_id in free
    ]
    doc_ids = {query_id: [*begun.get(query_id, ()), *topics.get(query_id, ())] for query_id in ids}
    n_begun = {query_id: len(begun.get(query_id, ())) for query_id in ids}
    by_others = len(own_done) - sum(n_begun.values())
    if budget is not None:
        sizes = {query_id: len(of_topic) for query_id, of_topic in doc_ids.items()}
        n_of = _filled(sizes, n_begun, max(1, round(budget / (1 + overlap))) - by_others)
        doc_ids = {query_id: of_topic[: n_of[query_id]] for query_id, of_topic in doc_ids.items()}
    _give(owners, free, {query_id: len(of_topic) for query_id, of_topic in doc_ids.items()}, assessors, most)
    again = [row for row in done if row.overlap]
    # Whoever judged a passage a second time does not get it as her own, too.
    judged = {row[:3] for row in again}
    tasks = [
        PlannedTask(owners[query_id], query_id, doc_id)
        for query_id, of_topic in doc_ids.items()
        for doc_id in of_topic
        if (owners[query_id], query_id, doc_id) not in judged
    ]
    planned = set(tasks)
    done_by_others = [row for row in own_done if row not in planned]
    n_twice = round(overlap * (len(tasks) + len(done_by_others)))
    if budget is not None:
        n_twice = min(n_twice, budget - len(tasks) - len(done_by_others))
    twice = _overlap([*tasks, *done_by_others], assessors, n_twice, again)
    return _ordered([*done_by_others, *tasks, *twice], assessors)


def _draw(*ids: str) -> bytes:
    """A random number that depends only on the ids."""
    return hashlib.sha256("\t".join(("0", *ids)).encode("utf-8", "surrogatepass")).digest()


def _give(
    owners: dict[str, str],
    free: Sequence[str],
    sizes: Mapping[str, int],
    assessors: Sequence[str],
    most: int,
) -> None:
    """Assigns free topics, largest first, each to the assessor with the least work."""
    has = Counter(owners.values())
    work = Counter({name: sum(sizes[q] for q in owners if owners[q] == name) for name in assessors})
    for query_id in sorted(free, key=lambda query_id: (-sizes[query_id], _draw(query_id))):
        name = min((name for name in assessors if has[name] < most), key=lambda name: (work[name], has[name]))
        owners[query_id] = name
        has[name] += 1
        work[name] += sizes[query_id]


def _filled(sizes: Mapping[str, int], least: Mapping[str, int], total: int) -> dict[str, int]:
    """Counts per topic: at least the given ones, then one more for the smallest up to the total."""
    counts = {name: least.get(name, 0) for name in sizes}
    left = total - sum(counts.values())
    for level in range(1, max(sizes.values(), default=0) + 1):
        for name, size in sizes.items():
            if left > 0 and counts[name] < min(level, size):
                counts[name] += 1
                left -= 1
    return counts


def _overlap(
    first_tasks: Sequence[PlannedTask],
    assessors: Sequence[str],
    n_wanted: int,
    done: Sequence[PlannedTask],
) -> list[PlannedTask]:
    """The passages to judge twice, by their second assessor: those that are done, and others drawn."""
    twice = [*done]
    drawn = {row[1:3] for row in twice}
    work = Counter(row.assessor for row in (*first_tasks, *twice))
    for row in sorted(first_tasks, key=lambda row: _draw("overlap", *row[1:3])):
        if len(twice) >= n_wanted:
            break
        if row[1:3] not in drawn:
            name = min((name for name in assessors if name != row.assessor), key=lambda name: work[name])
            work[name] += 1
            twice.append(PlannedTask(name, row.query_id, row.doc_id, overlap=True))
    return twice


def _ordered(rows: Sequence[PlannedTask], assessors: Sequence[str]) -> JudgingPlan:
    """Return each assessor's tasks by topic, with the overlap spread evenly between the topics."""
    ordered: list[PlannedTask] = []
    for name in dict.fromkeys((*assessors, *(row.assessor for row in rows))):
        mine = [row for row in rows if row.assessor == name]
        own, again = (
            list(dict.fromkeys(row.query_id for row in mine if row.overlap == kind)) for kind in (False, True)
        )
        place = {(query_id, False): (at, -1) for at, query_id in enumerate(own, 1)}
        # The overlap's topics come after the same share of her own.
        place |= {
            (query_id, True): (-(-at * len(own) // len(again)), at) for at, query_id in enumerate(again, 1)
        }
        ordered += sorted(mine, key=lambda row: place[row.query_id, row.overlap])
    return JudgingPlan(tuple(ordered))
