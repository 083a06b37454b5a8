"""Divides passages among assessors. Pure functions; the result depends only on the arguments."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from trecexam.extensions.campaign.plan import JudgingPlan, PlannedTask


class Topic(NamedTuple):
    """A query with its passages to judge.

    Attributes:
        doc_ids: what is worth judging and not judged yet, the first to judge first.
        pooled: everything that may be in a plan.
    """

    query_id: str
    doc_ids: tuple[str, ...]
    pooled: Collection[str]


def divided(
    topics: Sequence[Topic],
    assessors: Sequence[str],
    *,
    topics_each: int | None = None,
    overlap: float = 0.0,
    budget: int | None = None,
    earlier: JudgingPlan | None = None,
    is_done: Callable[[PlannedTask], bool] = lambda task: False,
) -> JudgingPlan:
    """A plan with each topic for one assessor, about equal work for all, and an overlap of tasks.

    Finished work of an earlier plan stays, as far as it still can: what is done always; a topic with
    its assessor, in its order, as long as she is among `assessors`. So the same arguments give the same plan
    again. Open tasks of people no longer named go to others.

    Args:
        assessors: at least one; with overlap at least two.
        topics_each: topics of an assessor at the most; None: all topics are divided.
        overlap: the share of tasks that a second person gets, too, drawn at random; 0..1.
        budget: tasks in all, the overlap counted twice, evenly over topics; None: as many as there are.
        earlier, is_done: the plan so far, and what of it is done.
    """
    done = frozenset(row for row in (earlier.rows if earlier else ()) if is_done(row))
    old = earlier.rows if earlier is not None and done else ()
    most = topics_each or len(topics)
    owners = _kept_owners(topics, assessors, most, old, done)
    free = _free_topics(topics, owners, most * len(assessors), old, done)
    share = None if budget is None else max(1, round(budget / (1 + overlap)))
    doc_ids = _to_judge(topics, owners, free, old, done, share)
    _give(owners, free, {query_id: len(ids) for query_id, ids in doc_ids.items()}, assessors, most)
    owner_tasks = [
        PlannedTask(owners[query_id], query_id, doc_id)
        for query_id in doc_ids
        for doc_id in doc_ids[query_id]
    ]
    # Finished tasks of others remain theirs.
    planned = set(owner_tasks)
    done_by_others = [row for row in old if row in done and not row.overlap and row not in planned]
    n_twice = round(overlap * (len(owner_tasks) + len(done_by_others)))
    if budget is not None:
        n_twice = min(n_twice, budget - len(owner_tasks) - len(done_by_others))
    twice = _overlap([*owner_tasks, *done_by_others], assessors, n_twice, old, done)
    return _ordered(owner_tasks, done_by_others, twice, assessors)


def _draw(*ids: str) -> bytes:
    """A random number that depends only on the ids."""
    return hashlib.sha256("\t".join(("0", *ids)).encode("utf-8", "surrogatepass")).digest()


def _kept_owners(
    topics: Sequence[Topic],
    assessors: Sequence[str],
    most: int,
    old: Sequence[PlannedTask],
    done: Collection[PlannedTask],
) -> dict[str, str]:
    """query_id -> the assessor who continues with it: the owner of open tasks, else of finished ones."""
    first_tasks = [row for row in old if not row.overlap]
    holder = {row.query_id: row.assessor for row in first_tasks if row in done}
    begun = frozenset(holder)
    holder.update({row.query_id: row.assessor for row in first_tasks if row not in done})
    current_ids = {topic.query_id for topic in topics}
    has: Counter[str] = Counter()
    owners: dict[str, str] = {}
    for query_id in sorted(holder, key=lambda query_id: query_id not in begun):
        name = holder[query_id]
        if query_id in current_ids and name in assessors and has[name] < most:
            owners[query_id] = name
            has[name] += 1
    return owners


def _free_topics(
    topics: Sequence[Topic],
    owners: Collection[str],
    most: int,
    old: Sequence[PlannedTask],
    done: Collection[PlannedTask],
) -> list[str]:
    """The query_ids without an owner: unfinished topics first, then others in random order."""
    first_tasks = [row for row in old if not row.overlap]
    left = {row.query_id for row in first_tasks if row not in done}
    over = {row.query_id for row in first_tasks} - left
    free = [
        topic.query_id
        for topic in topics
        if topic.query_id not in owners
        and topic.query_id not in over
        and (topic.doc_ids or topic.query_id in left)
    ]
    free.sort(key=lambda query_id: (query_id not in left, _draw(query_id)))
    return free[: max(0, most - len(owners))]


def _to_judge(
    topics: Sequence[Topic],
    owners: Mapping[str, str],
    free: Collection[str],
    old: Sequence[PlannedTask],
    done: Collection[PlannedTask],
    budget: int | None,
) -> dict[str, list[str]]:
    """query_id -> the passages that its owner judges, in order, including finished ones."""
    tasks_by_topic: dict[str, list[PlannedTask]] = {}
    n_others = 0
    for row in old:
        if not row.overlap:
            tasks_by_topic.setdefault(row.query_id, []).append(row)
            n_others += row in done and row.assessor != owners.get(row.query_id)
    lists: dict[str, list[str]] = {}
    mine: dict[str, set[str]] = {}
    for topic in topics:
        query_id = topic.query_id
        if query_id not in owners and query_id not in free:
            continue
        of_topic = tasks_by_topic.get(query_id, [])
        by = {row.doc_id: row.assessor for row in of_topic if row in done}
        mine[query_id] = {doc_id for doc_id, name in by.items() if name == owners.get(query_id)}
        lists[query_id] = [
            doc_id
            for doc_id in dict.fromkeys((*(row.doc_id for row in of_topic), *topic.doc_ids))
            if doc_id in mine[query_id] or (doc_id not in by and doc_id in topic.pooled)
        ]
    if budget is None:
        return lists
    n_mine = {query_id: len(doc_ids) for query_id, doc_ids in mine.items()}
    counts = _filled({q: len(doc_ids) for q, doc_ids in lists.items()}, n_mine, budget - n_others)
    for query_id, doc_ids in lists.items():
        is_open = [doc_id for doc_id in doc_ids if doc_id not in mine[query_id]]
        chosen = {*mine[query_id], *is_open[: counts[query_id] - n_mine[query_id]]}
        lists[query_id] = [doc_id for doc_id in doc_ids if doc_id in chosen]
    return lists


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
    old: Sequence[PlannedTask],
    done: Collection[PlannedTask],
) -> list[PlannedTask]:
    """The passages to judge twice, by their second assessor."""
    first = {row[1:3]: row.assessor for row in first_tasks}
    twice = [row for row in old if row.overlap and row in done]
    is_open = [
        row
        for row in old
        if row.overlap
        and row not in done
        and row.assessor in assessors
        and first.get(row[1:3], row.assessor) != row.assessor
    ]
    twice += is_open[: max(0, n_wanted - len(twice))]
    drawn = {row[1:3] for row in twice}
    work = Counter(row.assessor for row in (*first_tasks, *twice))
    for row in sorted(first_tasks, key=lambda row: _draw("overlap", *row[1:3])):
        if len(twice) >= n_wanted:
            break
        if row[1:3] not in drawn:
            name = min((name for name in assessors if name != row.assessor), key=lambda name: work[name])
            work[name] += 1
            twice.append(PlannedTask(name, row.query_id, row.doc_id, overlap=True))
    index_of = {row: at for at, row in enumerate(old)}
    return sorted(twice, key=lambda row: index_of.get(row, len(index_of)))


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
