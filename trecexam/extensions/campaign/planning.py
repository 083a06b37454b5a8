"""Making of a campaign's plan: passages to judge, their order, and their assessors."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from statistics import median

from trecexam.errors import TrecexamError, quoted
from trecexam.extensions.campaign.assessments import counting, is_done, items_to_judge, opinions_of
from trecexam.extensions.campaign.judge_next.next_judgments import suggestions
from trecexam.extensions.campaign.plan import PlannedTask, by_assessor, read_plan, write_plan
from trecexam.extensions.campaign.tables import read_columns
from trecexam.grades.diagnostics import NO_RUNS
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.result import Tables
from trecexam.results.table import Layout, Table
from trecexam.results.text import LOST, Note, plural


def check_plan(names: Sequence[str], topics_each: int | None, overlap: float, budget: int | None) -> None:
    """Raise a TrecexamError if the arguments of a plan do not go together."""
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


def done_tasks(track: GradedTrack) -> list[PlannedTask]:
    """Return the finished tasks of the current plan."""
    opinions = opinions_of(track)
    return [
        task
        for tasks in (read_plan(track.folder) or {}).values()
        for task in tasks
        if is_done(opinions.get(task.assessor, {}), *task[1:3], items_to_judge(track, task.query_id))
    ]


def judging_progress(track: GradedTrack) -> Tables:
    """Return each assessor's work on the track's plan; empty without a plan.

    `judgments` counts cells (several per passage); `cannot` counts those marked "cannot
    judge"; `median_seconds` is the active time per timed judgment.
    """
    opinions = opinions_of(track)
    n_done = Counter(task.assessor for task in done_tasks(track))
    rows = []
    for name, tasks in (read_plan(track.folder) or {}).items():
        cells = {
            (*task[1:3], item_id) for task in tasks for item_id in (*items_to_judge(track, task.query_id), "")
        }
        judgments = [row for cell, row in opinions.get(name, {}).items() if cell in cells]
        seconds = [row.seconds for row in judgments if row.seconds is not None]
        n, n_cannot = len(tasks), sum(row.cannot for row in judgments)
        work = n, n_done[name], n - n_done[name], len(judgments), n_cannot
        rows.append((name, *work, median(seconds) if seconds else None))
    header = ("assessor", "tasks", "done", "left", "judgments", "cannot", "median_seconds")
    return Tables({"assessors": Table(header, tuple(rows), layout=Layout(("assessor",)))})


def passages_to_judge(
    track: GradedTrack,
    done: Collection[PlannedTask],
    passages: Path | str | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[dict[str, list[str]], list[str]]:
    """Return query_id -> passages to judge, in order, and notes on the order."""
    notes: list[str] = []
    if passages is None:
        suggested, _, why = suggestions(track, progress=progress, with_judged=True)
        ranked: Sequence[tuple[str, ...]] = [(row.query_id, row.doc_id) for row in suggested]
        notes += [f"ordered by the runs alone: {why}"] if why else []
    else:
        ranked = _listed(track, Path(passages))
    by_query: dict[str, dict[str, None]] = {query_id: {} for query_id in track.bank.query_ids}
    for query_id, doc_id in ranked:
        by_query.get(query_id, {})[doc_id] = None
    judged, has_texts = counting(track), _has_texts(track)
    own_done = {task[1:3] for task in done if not task.overlap}
    topics: dict[str, list[str]] = {}
    for query_id, doc_ids in by_query.items():
        sheet, items = track.sheets[query_id], items_to_judge(track, query_id)
        skipped = track.inputs.judged.get(query_id, {}) if "" in items else {}
        # The first passage of each text; every passage if the track has no texts.
        of_text: dict[str, str] = {}
        for doc_id in doc_ids:
            of_text.setdefault(sheet.text_of(doc_id) or ("" if has_texts else doc_id), doc_id)
        of_text.pop("", None)
        topics[query_id] = [
            doc_id
            for doc_id in of_text.values()
            if doc_id not in skipped
            and (query_id, doc_id) not in own_done
            and not all((query_id, doc_id, item_id) in judged for item_id in items)
        ]
    return topics, notes


def write_campaign(
    track: GradedTrack,
    rows: Sequence[PlannedTask],
    topics: Mapping[str, Sequence[str]],
    n_done: int,
    notes: list[str],
) -> Tables:
    """Write a plan; return a row per assessor, where `shared` counts tasks of a second assessor, too."""
    if not rows:
        if not track.runs:
            raise TrecexamError(NO_RUNS, path=track.folder.runs)
        of_whole = any("" in items_to_judge(track, query_id) for query_id in track.inputs.judged)
        why = " (passages with official judgments are not planned)" if of_whole else ""
        notes.append(f"no passage is left to judge{why}")
    elif not _has_texts(track):
        notes.append(
            "no passages.jsonl: the page of `trecexam serve` needs it to show the passages; judgments made "
            f"elsewhere come in by `trecexam judge import {quoted(track.folder.root)} FILE`"
        )
    n_assessors = Counter(row[1:3] for row in rows)
    n_shared = sum(n > 1 for n in n_assessors.values())
    left_out = sum(
        (query_id, doc_id) not in n_assessors for query_id in topics for doc_id in topics[query_id]
    )
    plan = by_assessor(rows)
    table = tuple(
        (
            name,
            len({task.query_id for task in tasks if not task.overlap}),
            len(tasks),
            sum(n_assessors[task[1:3]] > 1 for task in tasks),
        )
        for name, tasks in plan.items()
    )
    shared = "each" if n_shared == len(n_assessors) else f"{n_shared:,} of them"
    summary = (
        f"{plural(len(n_assessors), 'passage')}"
        + (f", {shared} for two people" if n_shared else "")
        + f": {plural(len(rows), 'task')} for {plural(len(plan), 'assessor')}"
        + (f", {n_done:,} done" if n_done else "")
        + (f"; {plural(left_out, 'unjudged passage')} left out" if left_out else "")
    )
    notes.append(Note(f"wrote {write_plan(track.folder, rows)}: {summary}", LOST))
    return Tables({"assessors": Table(("assessor", "topics", "tasks", "shared"), table)}, tuple(notes))


def _has_texts(track: GradedTrack) -> bool:
    """Return False for a track that needs no texts and has no passages."""
    return bool(len(track.bank) or track.folder.passages() or track.config.track.dataset)


def _listed(track: GradedTrack, path: Path) -> Sequence[tuple[str, ...]]:
    """Return (query_id, doc_id) of the pooled passages in a list, in its order."""
    pooled = {(query_id, doc_id) for query_id, of in track.pool.items() for doc_id in of.doc_ids}
    rows = read_columns(path, ("query_id", "doc_id"))
    listed = [row for _, row in rows if row in pooled]
    if not listed:
        raise TrecexamError(f"the pool has none of the file's {plural(len(rows), 'passage')}", path=path)
    return listed


def divided(
    topics: Mapping[str, Sequence[str]],
    assessors: Sequence[str],
    *,
    topics_each: int | None = None,
    overlap: float = 0.0,
    budget: int | None = None,
    done: Sequence[PlannedTask] = (),
) -> list[PlannedTask]:
    """Return a plan with one assessor per topic, about equal work for all, and an overlap of tasks.

    Finished tasks stay, and a begun topic stays with its assessor, if still named. The same arguments give
    the same plan.

    Args:
        topics: query_id -> passages to judge, in order, without those in `done`.
        done: finished tasks of an earlier plan.
    """
    most = topics_each or max(len(topics), len(done))
    own_done, again = [[row for row in done if row.overlap == kind] for kind in (False, True)]
    owners: dict[str, str] = {}
    for name, query_id, *_ in own_done:
        if query_id not in owners and name in assessors and Counter(owners.values())[name] < most:
            owners[query_id] = name
    begun = Counter(row.query_id for row in own_done if owners.get(row.query_id) == row.assessor)
    free = [query_id for query_id, doc_ids in topics.items() if doc_ids and query_id not in owners]
    free = sorted(free, key=_draw)[: max(0, most * len(assessors) - len(owners))]
    doc_ids = {query_id: topics[query_id] for query_id in topics if query_id in owners or query_id in free}
    # Include finished tasks of topics without remaining passages.
    sizes = {query_id: begun[query_id] + len(doc_ids.get(query_id, ())) for query_id in (*doc_ids, *owners)}
    if budget is not None:
        by_others = len(own_done) - begun.total()
        sizes = _filled(sizes, begun, max(1, round(budget / (1 + overlap))) - by_others)
    _give(owners, free, sizes, assessors, most)
    # Nobody gets a passage twice, as her own and as overlap.
    judged = {row[:3] for row in again}
    first = [
        *own_done,
        *(
            PlannedTask(owners[query_id], query_id, doc_id)
            for query_id, of_topic in doc_ids.items()
            for doc_id in of_topic[: sizes[query_id] - begun[query_id]]
            if (owners[query_id], query_id, doc_id) not in judged
        ),
    ]
    n_twice = round(overlap * len(first))
    if budget is not None:
        n_twice = min(n_twice, budget - len(first))
    return _ordered([*first, *_overlap(first, assessors, n_twice, again)], assessors)


def _draw(*ids: str) -> bytes:
    """Return a random number that depends only on the ids."""
    return hashlib.sha256("\t".join(("0", *ids)).encode("utf-8", "surrogatepass")).digest()


def _give(
    owners: dict[str, str],
    free: Sequence[str],
    sizes: Mapping[str, int],
    assessors: Sequence[str],
    most: int,
) -> None:
    """Assign free topics, largest first, each to the assessor with the least work."""
    has = Counter(owners.values())
    work = Counter({name: sum(sizes[q] for q in owners if owners[q] == name) for name in assessors})
    for query_id in sorted(free, key=lambda query_id: (-sizes[query_id], _draw(query_id))):
        name = min((name for name in assessors if has[name] < most), key=lambda name: (work[name], has[name]))
        owners[query_id] = name
        has[name] += 1
        work[name] += sizes[query_id]


def _filled(sizes: Mapping[str, int], least: Mapping[str, int], total: int) -> dict[str, int]:
    """Count per topic: at least the given ones, then one more for the smallest up to the total."""
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
    """Return the passages to judge twice, by their second assessor: those that are done, and others drawn."""
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


def _ordered(rows: Sequence[PlannedTask], assessors: Sequence[str]) -> list[PlannedTask]:
    """Return each assessor's tasks by topic, with the overlap spread evenly between the topics."""
    ordered: list[PlannedTask] = []
    for name in dict.fromkeys((*assessors, *(row.assessor for row in rows))):
        mine = [row for row in rows if row.assessor == name]
        once, again = (
            list(dict.fromkeys(row.query_id for row in mine if row.overlap == kind)) for kind in (False, True)
        )
        position = {(query_id, False): (at, -1) for at, query_id in enumerate(once, 1)}
        # Overlap tasks come after the same share of own tasks.
        position |= {
            (query_id, True): (-(-at * len(once) // len(again)), at) for at, query_id in enumerate(again, 1)
        }
        ordered += sorted(mine, key=lambda row: position[row.query_id, row.overlap])
    return ordered
