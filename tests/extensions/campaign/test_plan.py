from __future__ import annotations

from pathlib import Path

import pytest
from campaign import campaign, to_rate
from hypothesis import given
from hypothesis import strategies as st
from support import make_small_track

from trecexam.errors import TrecexamError
from trecexam.extensions.campaign.assessments import record_assessment
from trecexam.extensions.campaign.plan import JudgingPlan, PlannedTask, read_plan, write_plan
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
        ("ada\tq1\td1\town\n", 1, "the first line is not assessor query_id doc_id task"),
        ("HEADER\nada\tq1\td1\tsecond\n", 2, "own or overlap"),
        ("HEADER\nada\tq1\t\town\n", 2, "own or overlap"),
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
        ("q1 0 q1-d00 1\n", 1, "the header line lacks query_id or doc_id"),
        ("query_id\tdoc_id\nq1\n", 2, "1 columns, and the header has 2"),
        ("query_id\tdoc_id\nq9\td\n", None, "the pool has none of the file's 1 passage"),
        ("", None, "the pool has none of the file's 0 passages"),
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
