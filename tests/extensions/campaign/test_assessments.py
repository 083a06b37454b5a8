from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from campaign import campaign, planned, to_rate

from converters.records import HumanRating, Item
from trecexam.config.sections import JudgingSection
from trecexam.errors import TrecexamError
from trecexam.extensions.campaign.assessments import (
    CellKey,
    is_done,
    items_to_judge,
    opinions_of,
    own_assessments,
    record_assessment,
)
from trecexam.extensions.campaign.planning import judging_progress
from trecexam.features.override.overriding import seen_token, take
from trecexam.inputs.overrides import JudgingScale
from trecexam.track import selection

ITEMS = (Item("q1", "q1/0", "Why?", "question"), Item("q1", "q1/1", "How?", "nugget"))
SCALE = JudgingScale(("no", "yes"), "a test")
QUERY = (Item("q1", "q1", "the query", "query"),)


@pytest.mark.parametrize(
    ("settings", "scale", "items", "asked"),
    [
        ({}, None, ITEMS, ("q1/0", "q1/1")),
        ({"whole_passage": True}, None, ITEMS, ("q1/0", "q1/1", "")),
        ({}, SCALE, ITEMS, ("",)),
        ({"whole_passage": False}, SCALE, ITEMS, ("q1/0", "q1/1")),
        ({}, None, QUERY, ("",)),
        ({}, None, (), ("",)),
    ],
)
def test_the_questions_on_a_passage_follow_the_settings_and_the_bank(
    settings: dict[str, object], scale: JudgingScale | None, items: tuple[Item, ...], asked: tuple[str, ...]
) -> None:
    bank, config = SimpleNamespace(items={"q1": items}), SimpleNamespace(judging=JudgingSection(**settings))  # type: ignore[arg-type]
    track = SimpleNamespace(bank=bank, config=config, judging_scale=scale)
    assert items_to_judge(track, "q1") == asked  # type: ignore[arg-type]


def test_each_person_has_separate_judgments_and_undo_restores_the_earlier_one(graded: Path) -> None:
    with campaign(graded) as track:
        query, folder = to_rate(track, "q1"), track.folder
        first = record_assessment(folder, query, "q1-d03", "", 2, who="ada", seconds=4.5, note="see d04")
        assert (first.rating, first.seconds, first.note, first.why) == (2, 4.5, "see d04", "judged")
        record_assessment(folder, query, "q1-d03", "", 0, who="bob")

        def said(who: str) -> list[HumanRating]:
            return list(own_assessments(folder, who, query.scale).values())

        assert said("ada") == [first]
        second = record_assessment(folder, query, "q1-d03", "", 1, who="ada", seen=seen_token(first))
        assert said("ada") == [second]
        undone = record_assessment(folder, query, "q1-d03", "", None, who="ada", seen=seen_token(second))
        assert (undone.rating, undone.note) == (2, "see d04")
        assert said("ada") == [undone]
        assert record_assessment(folder, query, "q1-d03", "", None, who="ada").rating is None
        assert said("ada") == []
        assert [row.rating for row in said("bob")] == [0]
        # Undoing nothing does not undo Bob's rating.
        with pytest.raises(TrecexamError, match="no rating to withdraw"):
            record_assessment(folder, query, "q1-d03", "", None, who="ada")


def test_a_passage_is_done_when_all_is_judged_or_it_cannot_be_judged(graded: Path) -> None:
    with campaign(graded, "") as track:
        query, folder = to_rate(track, "q1"), track.folder
        asked = [item.item_id for item in query.items]

        def done(doc_id: str) -> bool:
            return is_done(opinions_of(selection(track).graded()).get("ada", {}), "q1", doc_id, asked)

        for item_id in asked[:-1]:
            record_assessment(folder, query, "q1-d03", item_id, 3, who="ada")
        assert not done("q1-d03")
        record_assessment(folder, query, "q1-d03", asked[-1], "cannot", who="ada", why="odd")
        assert done("q1-d03")
        record_assessment(folder, query, "q1-d04", "", "cannot", who="ada", why="in Welsh")
        assert done("q1-d04")
        record_assessment(folder, query, "q1-d03", asked[0], None, who="ada")
        assert not done("q1-d03")


def test_an_adjudication_is_not_a_judgment_of_the_adjudicator(graded: Path) -> None:
    with campaign(graded) as track:
        query = to_rate(track, "q1")
        take(track.folder, query, "q1-d03", "", 1, "ada", "read both", adjudicates=True)
        assert own_assessments(track.folder, "ada", query.scale) == {}
        assert opinions_of(selection(track).graded()) == {}
        record_assessment(track.folder, query, "q1-d03", "", 2, who="ada")
        assert list(opinions_of(selection(track).graded())["ada"]) == [CellKey("q1", "q1-d03", "")]
        assert [row.rating for row in own_assessments(track.folder, "ada", query.scale).values()] == [2]


def test_progress_shows_per_assessor_what_is_left_and_the_speed(graded: Path) -> None:
    with campaign(graded) as track:
        track.judging.plan(["ada", "bob"], overlap=0.1)
        plan = planned(track)
        first, second, third, *_ = (task[1:3] for task in plan["ada"])
        for (query_id, doc_id), rating, seconds in (
            (first, 2, 10.0), (second, "cannot", 2.0), (third, 1, None),
        ):  # fmt: skip
            record_assessment(
                track.folder, to_rate(track, query_id), doc_id, "", rating,  # type: ignore[arg-type]
                who="ada", why="x", seconds=seconds,
            )  # fmt: skip
        # Unplanned judgments are not part of the plan.
        record_assessment(track.folder, to_rate(track, "q1"), "q1-d00", "", 1, who="zoe", seconds=1.0)
        found = judging_progress(selection(track).graded())
        ada, bob = found.table.rows
        n, n_bob = len(plan["ada"]), len(plan["bob"])
        assert ada == ("ada", n, 3, n - 3, 3, 1, 6.0)
        assert bob == ("bob", n_bob, 0, n_bob, 0, 0, None)
