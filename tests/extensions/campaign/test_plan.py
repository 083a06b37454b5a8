from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import pytest
from campaign import campaign, to_rate
from hypothesis import given
from hypothesis import strategies as st
from support import make_small_track

from trecexam.errors import TrecexamError
from trecexam.extensions.campaign.assessments import record_assessment
from trecexam.extensions.campaign.plan import JudgingPlan, PlannedTask, read_plan, write_plan
from trecexam.extensions.campaign.planning import divided
from trecexam.folder import TrackFolder

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
    plan = JudgingPlan(tuple(PlannedTask(*task, overlap) for task, overlap in tasks.items()))
    write_plan(folder, plan)
    assert read_plan(folder) == plan


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
        listed = track.judge_next().rows
        planned = track.judging.plan(["ada", "bob"])
        tasks = planned.plan.tasks("ada") + planned.plan.tasks("bob")
        pool = {(row.query_id, row.doc_id) for row in track.export.pool()}
        assert set(tasks) == pool - {("q1", "q1-d03")}
        for query_id in ("q1", "q2", "q3"):
            order = [doc_id for of, doc_id in tasks if of == query_id]
            assert order == [row.doc_id for row in listed if row.query_id == query_id]
        assert read_plan(track.folder) == planned.plan
        assert track.judging.plan(["ada", "bob"]).plan == planned.plan


def test_officially_judged_passages_are_skipped_but_their_items_are_planned(graded: Path) -> None:
    with campaign(graded, official=True) as track:
        planned = track.judging.plan(["ada"])
        assert planned.plan.rows == ()
        assert "no passage is left to judge" in planned.notes[0]
    config = graded / "trecexam.toml"
    config.write_text(config.read_text().replace("scale", "whole_passage = false\nscale"))
    with campaign(graded, "", official=True) as track:
        planned = track.judging.plan(["ada"])
        assert len(planned.plan.rows) == len(list(track.export.pool()))
        items = [item.item_id for item in to_rate(track, "q1").items]
        for item_id in items:
            record_assessment(track.folder, to_rate(track, "q1"), "q1-d03", item_id, 2, who="zoe")
        again = track.judging.plan(["ada"])
        assert set(planned.plan.rows) - set(again.plan.rows) == {PlannedTask("ada", "q1", "q1-d03")}


def test_without_runs_there_is_no_plan(graded: Path) -> None:
    for path in (graded / "runs").iterdir():
        path.unlink()
    with campaign(graded) as track:
        with pytest.raises(TrecexamError, match="no runs yet: drop some into") as caught:
            track.judging.plan(["ada"])
        assert caught.value.path == str(graded / "runs")
        assert read_plan(track.folder) is None


def test_a_rating_of_a_passage_on_the_graders_scale_is_no_judgment_on_the_tracks(graded: Path) -> None:
    (graded / "overrides.tsv").write_text("query_id\tdoc_id\trating\twho\twhy\nq1\tq1-d03\t5\tada\tx\n")
    with campaign(graded) as track:
        assert ("q1", "q1-d03") in track.judging.plan(["ada"]).plan.tasks("ada")
        assert ("q1", "q1-d03") in {(row.query_id, row.doc_id) for row in track.judge_next().rows}


def test_only_one_of_several_passages_with_the_same_text_is_planned(graded: Path) -> None:
    path = graded / "passages.jsonl"
    path.write_text(path.read_text().replace("passage 5 about q1", "passage 3 about q1"))
    with campaign(graded) as track:
        tasks = track.judging.plan(["ada"]).plan.tasks("ada")
        assert ("q1", "q1-d03") in tasks
        assert ("q1", "q1-d05") not in tasks


def test_without_grades_the_order_follows_the_runs_and_a_note_says_so(small_track: Path) -> None:
    with campaign(small_track) as track:
        planned = track.judging.plan(["ada"])
        assert "ordered by the runs alone: nothing is graded yet" in planned.notes[0]


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
        planned = track.judging.plan(["ada"], passages=listed)
        tasks = planned.plan.tasks("ada")
        assert set(tasks) == {pool[9], pool[2], pool[0], pool[-1]}
        for query_id in ("q1", "q2", "q3"):
            of_query = [row for row in dict.fromkeys(asked) if row in pool and row[0] == query_id]
            assert [row for row in tasks if row[0] == query_id] == of_query
        # Judged passages are not planned again.
        query_id, doc_id = pool[0]
        record_assessment(track.folder, to_rate(track, query_id), doc_id, "", 2, who="zoe")
        assert (query_id, doc_id) not in track.judging.plan(["ada"], passages=listed).plan.tasks("ada")


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("q1 0 q1-d00 1\n", 1, "the header line lacks query_id, doc_id"),
        ("query_id\tdoc_id\nq1\n", 2, "needs query_id, doc_id"),
        ("query_id\tdoc_id\nq9\td\n", None, "the pool has none of the file's 1 passage"),
        ("query_id\tdoc_id\n", None, "the pool has none of the file's 0 passages"),
    ],
)
def test_an_unusable_list_is_reported(
    graded: Path, tmp_path: Path, content: str, line: int | None, reason: str
) -> None:
    listed = tmp_path / "list.tsv"
    listed.write_text(content)
    with campaign(graded) as track, pytest.raises(TrecexamError, match=reason) as caught:
        track.judging.plan(["ada"], passages=listed)
    assert (caught.value.path, caught.value.line) == (str(listed), line)


@pytest.mark.parametrize(
    ("names", "arguments", "reason"),
    [
        ([], {}, "name the assessors"),
        (["ada", "ada"], {}, "'ada' is named twice"),
        (["ada", " "], {}, "has no name"),
        (["ada"], {"overlap": 0.1}, "needs a second assessor"),
        (["ada", "bob"], {"overlap": 1.5}, "from 0 to 1"),
        (["ada"], {"budget": 0}, "budget = 0"),
        (["ada"], {"topics_each": 0}, "topics_each = 0"),
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
