from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.campaign.dividing import divided
from trecexam.extensions.campaign.plan import JudgingPlan, PlannedTask

NAMES = ("ada", "bob", "eve")


def topics(*sizes: int, without: Iterable[PlannedTask] = ()) -> dict[str, list[str]]:
    judged = {row[1:3] for row in without}
    return {
        f"q{n}": [doc for place in range(size) if (f"q{n}", doc := f"q{n}-d{place}") not in judged]
        for n, size in enumerate(sizes)
    }


def owners(plan: JudgingPlan) -> dict[str, set[str]]:
    of: dict[str, set[str]] = {}
    for row in plan.rows:
        if not row.overlap:
            of.setdefault(row.query_id, set()).add(row.assessor)
    return of


SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=12)
OVERLAP = st.sampled_from([0.0, 0.1, 0.5, 1.0])
BUDGET = st.none() | st.integers(1, 60)


@given(SIZES, st.integers(2, 4), OVERLAP, BUDGET, st.none() | st.integers(1, 4))
def test_each_topic_has_one_assessor_with_even_work_within_budget_and_overlap(
    sizes: list[int], people: int, overlap: float, budget: int | None, each: int | None
) -> None:
    names = [f"p{n}" for n in range(people)]
    plan = divided(topics(*sizes), names, topics_each=each, overlap=overlap, budget=budget)
    assert all(len(of) == 1 for of in owners(plan).values())
    own = [row for row in plan.rows if not row.overlap]
    twice = [row for row in plan.rows if row.overlap]
    # Each passage once, plus the overlap by another assessor.
    assert len({row[1:3] for row in own}) == len(own)
    first = {row[1:3]: row.assessor for row in own}
    assert all(first[row[1:3]] != row.assessor for row in twice)
    assert len({row[1:3] for row in twice}) == len(twice)
    if budget is None:
        assert len(twice) == round(overlap * len(own))
        if each is None:
            assert len(own) == sum(sizes)
    else:
        assert len(plan.rows) <= budget
    if each is not None:
        assert max(Counter(name for of in owners(plan).values() for name in of).values()) <= each
    else:
        # Nobody has more than the largest topic in excess of another's work.
        work = Counter(dict.fromkeys(names, 0)) + Counter(row.assessor for row in own)
        assert max(work.values()) - min(work[name] for name in names) <= max(sizes)
    # Passages of a topic in order, in one block each.
    for name in plan.assessors:
        blocks = [
            key for key, _ in groupby(plan.by_assessor[name], key=lambda row: (row.query_id, row.overlap))
        ]
        assert len(blocks) == len(set(blocks))
        for query_id in {row.query_id for row in plan.by_assessor[name]}:
            mine = [row.doc_id for row in own if (row.assessor, row.query_id) == (name, query_id)]
            assert mine == [f"{query_id}-d{place}" for place in range(len(mine))]


def test_a_budget_is_spread_evenly_over_topics() -> None:
    plan = divided(topics(9, 2, 9, 9), NAMES[:2], budget=17)
    assert Counter(row.query_id for row in plan.rows) == {"q0": 5, "q1": 2, "q2": 5, "q3": 5}
    assert sorted(Counter(row.assessor for row in plan.rows).values()) == [7, 10]


DONE = st.sets(st.integers(0, 80), min_size=1, max_size=40)


@given(SIZES, OVERLAP, BUDGET, st.none() | st.integers(1, 4), DONE)
def test_planning_again_keeps_what_is_done_and_whose_topic_it_is(
    sizes: list[int], overlap: float, budget: int | None, each: int | None, places: set[int]
) -> None:
    arguments = {"topics_each": each, "overlap": overlap, "budget": budget}
    plan = divided(topics(*sizes), NAMES, **arguments)  # type: ignore[arg-type]
    done = [row for place, row in enumerate(plan.rows) if place in places]
    first = [row for row in done if not row.overlap]
    # Judged passages are not candidates any more.
    left = topics(*sizes, without=first)
    again = divided(left, NAMES, **arguments, done=done)  # type: ignore[arg-type]
    assert {*done} <= {*again.rows}
    assert {query_id: owners(again)[query_id] for query_id in owners(JudgingPlan(tuple(first)))} == owners(
        JudgingPlan(tuple(first))
    )
    if budget is None and each is None:
        assert {row[1:3] for row in again.rows} == {row[1:3] for row in plan.rows}
    elif budget is not None:
        assert len(again.rows) <= max(budget, len(done))
    assert again == divided(left, NAMES, **arguments, done=done)  # type: ignore[arg-type]


@given(SIZES, OVERLAP, BUDGET, DONE)
def test_an_assessor_who_leaves_keeps_done_tasks_and_the_others_get_the_rest(
    sizes: list[int], overlap: float, budget: int | None, places: set[int]
) -> None:
    plan = divided(topics(*sizes), NAMES, overlap=overlap, budget=budget)
    done = [row for place, row in enumerate(plan.rows) if place in places]
    left = topics(*sizes, without=[row for row in done if not row.overlap])
    again = divided(left, ("ada", "bob", "zoe"), overlap=overlap, budget=budget, done=done)
    assert {*done} <= {*again.rows}
    assert {row for row in again.rows if row.assessor == "eve"} == {
        row for row in done if row.assessor == "eve"
    }
    tasks = Counter(row[:3] for row in again.rows)
    assert max(tasks.values(), default=1) == 1
    assert len({row[1:3] for row in again.rows if not row.overlap}) == sum(
        not row.overlap for row in again.rows
    )
    if budget is None:
        assert {row[1:3] for row in again.rows} == {row[1:3] for row in plan.rows}


def test_overlap_tasks_are_between_the_topics_not_at_the_end() -> None:
    plan = divided(topics(*[3] * 9), NAMES, overlap=0.4)
    for name in NAMES:
        kinds = [row.overlap for row in plan.by_assessor[name]]
        assert True in kinds[: len(kinds) * 2 // 3]
