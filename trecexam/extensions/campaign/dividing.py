"""Divides passages among assessors. Pure functions; the result depends only on the arguments."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from trecexam.extensions.campaign.plan import JudgingPlan, PlannedTask


def divided(
    topics: Mapping[str, Sequence[str]],
    assessors: Sequence[str],
    *,
    topics_each: int | None = None,
    overlap: float = 0.0,
    budget: int | None = None,
    done: Sequence[PlannedTask] = (),
) -> JudgingPlan:
    """A plan with each topic for one assessor, about equal work for all, and an overlap of tasks.

    What is done stays, and a topic stays with the assessor who began it, if she is named. The same arguments
    give the same plan.

    Args:
        topics: query_id -> the passages to judge, the first to judge first; none that is in `done`.
        assessors: at least one; with overlap at least two.
        topics_each: topics of an assessor at the most; None: all topics are divided.
        overlap: the share of tasks that a second person gets, too, drawn at random; 0..1.
        budget: tasks in all, the overlap counted twice, evenly over topics; None: as many as there are.
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
    return _ordered(tasks, done_by_others, twice, assessors)


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


def _ordered(
    owner_tasks: Iterable[PlannedTask],
    done_by_others: Iterable[PlannedTask],
    twice: Iterable[PlannedTask],
    assessors: Sequence[str],
) -> JudgingPlan:
    """Each assessor's tasks by topic, with the overlap spread evenly between the topics."""
    blocks: dict[str, dict[bool, dict[str, list[PlannedTask]]]] = {name: {} for name in assessors}
    for row in (*done_by_others, *owner_tasks, *twice):
        of_kind = blocks.setdefault(row.assessor, {}).setdefault(row.overlap, {})
        of_kind.setdefault(row.query_id, []).append(row)
    rows: list[PlannedTask] = []
    for of_person in blocks.values():
        mine, again = (list(of_person.get(kind, {}).values()) for kind in (False, True))
        for number, block in enumerate(mine, 1):
            rows += block
            n_before = len(again) * (number - 1) // len(mine), len(again) * number // len(mine)
            rows += [row for each in again[slice(*n_before)] for row in each]
        if not mine:
            rows += [row for each in again for row in each]
    return JudgingPlan(tuple(rows))
