from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import pytest
from campaign import campaign, planned, to_rate
from hypothesis import given
from hypothesis import strategies as st
from support import make_small_track

from trecexam import Track
from trecexam.errors import TrecexamError
from trecexam.extensions.campaign.assessments import record_assessment
from trecexam.extensions.campaign.plan import PlannedTask, by_assessor, read_plan, write_plan
from trecexam.extensions.campaign.planning import divided
from trecexam.folder import TrackFolder


def tasks_of(track: Track, *names: str) -> list[tuple[str, str]]:
    """(query_id, doc_id) of these assessors' tasks in a new plan for them."""
    track.judging.plan(names)
    return [(task.query_id, task.doc_id) for name in names for task in planned(track).get(name, ())]


ID = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=5)
NAME = st.lists(ID, min_size=1, max_size=2).map(" ".join)
TASKS = st.dictionaries(st.tuples(NAME, ID, ID), st.booleans(), max_size=12)


@given(TASKS)
def test_a_written_plan_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, tasks: dict[tuple[str, str, str], bool]
) -> None:
    root = tmp_path_factory.mktemp("plan")
    (root / "trecexam.toml").write_text("[track]\n")
    folder = TrackFolder.open(root)
    assert read_plan(folder) is None
    rows = [PlannedTask(*task, overlap) for task, overlap in tasks.items()]
    write_plan(folder, rows)
    assert read_plan(folder) == by_assessor(rows)


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("", None, "is empty"),
        ("ada\tq1\td1\town\n", 1, "the header line lacks assessor"),
        ("HEADER\nada\tq1\td1\tsecond\n", 2, "own or overlap"),
        ("HEADER\nada\tq1\t\town\n", 2, "needs assessor, query_id, doc_id, task"),
        ("HEADER\nada\tq1\td1\town\n\nada\tq1\td1\toverlap\n", 4, "ada has 'd1' twice"),
    ],
)
def test_an_unreadable_plan_is_reported_with_its_line(
    tmp_path: Path, content: str, line: int | None, reason: str
) -> None:
    folder = TrackFolder.open(make_small_track(tmp_path / "track"))
    header = "assessor\tquery_id\tdoc_id\ttask"
    (folder.root / "judging.tsv").write_text(content.replace("HEADER", header))
    with pytest.raises(TrecexamError, match=reason) as caught:
        read_plan(folder)
    assert caught.value.line == line


def test_a_track_is_planned_in_judge_next_order_without_judged_passages(graded: Path) -> None:
    with campaign(graded) as track:
        record_assessment(track.folder, to_rate(track, "q1"), "q1-d03", "", 2, who="zoe")
        listed = list(track.judge_next())
        tasks = tasks_of(track, "ada", "bob")
        pool = {(row.query_id, row.doc_id) for row in track.export.pool()}
        assert set(tasks) == pool - {("q1", "q1-d03")}
        for query_id in ("q1", "q2", "q3"):
            order = [doc_id for of, doc_id in tasks if of == query_id]
            assert order == [row["doc_id"] for row in listed if row["query_id"] == query_id]
        assert tasks_of(track, "ada", "bob") == tasks


def test_officially_judged_passages_are_skipped_but_their_items_are_planned(graded: Path) -> None:
    with campaign(graded, official=True) as track:
        result = track.judging.plan(["ada"])
        assert read_plan(track.folder) == {}
        assert "no passage is left to judge" in result.notes[0]
    config = graded / "trecexam.toml"
    config.write_text(config.read_text().replace("scale", "whole_passage = false\nscale"))
    with campaign(graded, "", official=True) as track:
        tasks = tasks_of(track, "ada")
        assert len(tasks) == len(list(track.export.pool()))
        items = [item.item_id for item in to_rate(track, "q1").items]
        for item_id in items:
            record_assessment(track.folder, to_rate(track, "q1"), "q1-d03", item_id, 2, who="zoe")
        assert {*tasks} - {*tasks_of(track, "ada")} == {("q1", "q1-d03")}


def test_a_rating_of_a_passage_on_the_graders_scale_is_no_judgment_on_the_tracks(graded: Path) -> None:
    (graded / "overrides.tsv").write_text("query_id\tdoc_id\trating\twho\twhy\nq1\tq1-d03\t5\tada\tx\n")
    with campaign(graded) as track:
        assert ("q1", "q1-d03") in tasks_of(track, "ada")
        assert ("q1", "q1-d03") in {(row["query_id"], row["doc_id"]) for row in track.judge_next()}


def test_only_one_of_several_passages_with_the_same_text_is_planned(graded: Path) -> None:
    path = graded / "passages.jsonl"
    path.write_text(path.read_text().replace("passage 5 about q1", "passage 3 about q1"))
    with campaign(graded) as track:
        tasks = tasks_of(track, "ada")
        assert ("q1", "q1-d03") in tasks
        assert ("q1", "q1-d05") not in tasks


def test_a_given_list_of_passages_is_planned_in_its_order_and_nothing_else(
    graded: Path, tmp_path: Path
) -> None:
    with campaign(graded) as track:
        pool = [(row.query_id, row.doc_id) for row in track.export.pool()]
        listed = tmp_path / "list.tsv"
        asked = [pool[9], pool[2], pool[0], ("q1", "nowhere"), pool[-1], pool[2]]
        listed.write_text(
            "place\tdoc_id\tquery_id\n" + "".join(f"{at}\t{doc}\t{q}\n" for at, (q, doc) in enumerate(asked))
        )
        track.judging.plan(["ada"], passages=listed)
        tasks = [task[1:3] for task in planned(track)["ada"]]
        assert set(tasks) == {pool[9], pool[2], pool[0], pool[-1]}
        for query_id in ("q1", "q2", "q3"):
            of_query = [row for row in dict.fromkeys(asked) if row in pool and row[0] == query_id]
            assert [row for row in tasks if row[0] == query_id] == of_query
        # Judged passages are not planned again.
        query_id, doc_id = pool[0]
        record_assessment(track.folder, to_rate(track, query_id), doc_id, "", 2, who="zoe")
        track.judging.plan(["ada"], passages=listed)
        assert (query_id, doc_id) not in [task[1:3] for task in planned(track)["ada"]]


@pytest.mark.parametrize(
    ("names", "arguments", "reason"),
    [
        ([], {}, "name the assessors"),
        (["ada", "ada"], {}, "'ada' is named twice"),
        (["ada"], {"overlap": 0.1}, "needs a second assessor"),
        (["ada", "bob"], {"overlap": 1.5}, "from 0 to 1"),
        (["ada"], {"budget": 0}, "budget = 0"),
        (["ada\x1b"], {}, "control character"),
    ],
)
def test_invalid_plans_are_reported(
    graded: Path, names: list[str], arguments: dict[str, object], reason: str
) -> None:
    with campaign(graded) as track, pytest.raises(TrecexamError, match=reason):
        track.judging.plan(names, **arguments)  # type: ignore[arg-type]


NAMES = ("ada", "bob", "eve")


def topics(*sizes: int, without: Iterable[PlannedTask] = ()) -> dict[str, list[str]]:
    judged = {row[1:3] for row in without}
    return {
        f"q{n}": [doc for place in range(size) if (f"q{n}", doc := f"q{n}-d{place}") not in judged]
        for n, size in enumerate(sizes)
    }


def owners(rows: Iterable[PlannedTask]) -> dict[str, set[str]]:
    of: dict[str, set[str]] = {}
    for row in rows:
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
    own = [row for row in plan if not row.overlap]
    twice = [row for row in plan if row.overlap]
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
        assert len(plan) <= budget
    if each is not None:
        assert max(Counter(name for of in owners(plan).values() for name in of).values()) <= each
    else:
        # Nobody has more than the largest topic in excess of another's work.
        work = Counter(dict.fromkeys(names, 0)) + Counter(row.assessor for row in own)
        assert max(work.values()) - min(work[name] for name in names) <= max(sizes)
    # Passages of a topic in order, in one block each.
    for name, tasks in by_assessor(plan).items():
        blocks = [key for key, _ in groupby(tasks, key=lambda row: (row.query_id, row.overlap))]
        assert len(blocks) == len(set(blocks))
        for query_id in {row.query_id for row in tasks}:
            mine = [row.doc_id for row in own if (row.assessor, row.query_id) == (name, query_id)]
            assert mine == [f"{query_id}-d{place}" for place in range(len(mine))]


def test_a_budget_is_spread_evenly_over_topics() -> None:
    plan = divided(topics(9, 2, 9, 9), NAMES[:2], budget=17)
    assert Counter(row.query_id for row in plan) == {"q0": 5, "q1": 2, "q2": 5, "q3": 5}
    assert sorted(Counter(row.assessor for row in plan).values()) == [7, 10]


DONE = st.sets(st.integers(0, 80), min_size=1, max_size=40)


@given(SIZES, OVERLAP, BUDGET, st.none() | st.integers(1, 4), DONE)
def test_planning_again_keeps_what_is_done_and_whose_topic_it_is(
    sizes: list[int], overlap: float, budget: int | None, each: int | None, places: set[int]
) -> None:
    arguments = {"topics_each": each, "overlap": overlap, "budget": budget}
    plan = divided(topics(*sizes), NAMES, **arguments)  # type: ignore[arg-type]
    done = [row for place, row in enumerate(plan) if place in places]
    first = [row for row in done if not row.overlap]
    # Judged passages are not candidates any more.
    left = topics(*sizes, without=first)
    again = divided(left, NAMES, **arguments, done=done)  # type: ignore[arg-type]
    assert {*done} <= {*again}
    assert owners(again).items() >= owners(first).items()
    if budget is None and each is None:
        assert {row[1:3] for row in again} == {row[1:3] for row in plan}
    elif budget is not None:
        assert len(again) <= max(budget, len(done))
    assert again == divided(left, NAMES, **arguments, done=done)  # type: ignore[arg-type]


@given(SIZES, OVERLAP, BUDGET, DONE)
def test_an_assessor_who_leaves_keeps_done_tasks_and_the_others_get_the_rest(
    sizes: list[int], overlap: float, budget: int | None, places: set[int]
) -> None:
    plan = divided(topics(*sizes), NAMES, overlap=overlap, budget=budget)
    done = [row for place, row in enumerate(plan) if place in places]
    left = topics(*sizes, without=[row for row in done if not row.overlap])
    again = divided(left, ("ada", "bob", "zoe"), overlap=overlap, budget=budget, done=done)
    assert {*done} <= {*again}
    assert {row for row in again if row.assessor == "eve"} == {row for row in done if row.assessor == "eve"}
    tasks = Counter(row[:3] for row in again)
    assert max(tasks.values(), default=1) == 1
    assert len({row[1:3] for row in again if not row.overlap}) == sum(not row.overlap for row in again)
    if budget is None:
        assert {row[1:3] for row in again} == {row[1:3] for row in plan}
