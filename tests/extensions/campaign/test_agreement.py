from __future__ import annotations

from pathlib import Path

import pytest
from campaign import SCALE, campaign, to_rate

from trecexam.extensions.campaign.assessments import record_assessment
from trecexam.features.override.overriding import take

RATINGS = {"q1-d00": (2, 2), "q1-d01": (0, 2), "q1-d03": (1, 0), "q1-d04": (0, 0)}


def judge_all(track: object, item_id: str = "") -> None:
    query = to_rate(track, "q1")  # type: ignore[arg-type]
    for doc_id, (ada, bob) in RATINGS.items():
        record_assessment(track.folder, query, doc_id, item_id, ada, who="ada")  # type: ignore[attr-defined]
        record_assessment(track.folder, query, doc_id, item_id, bob, who="bob")  # type: ignore[attr-defined]


def test_agreement_covers_what_two_people_judged_and_lists_differences(graded: Path) -> None:
    with campaign(graded, SCALE + 'rule = "adjudicated"\n') as track:
        judge_all(track)
        query = to_rate(track, "q1")
        record_assessment(track.folder, query, "q1-d06", "", 1, who="ada")
        record_assessment(track.folder, query, "q1-d06", "", "cannot", who="bob", why="in Welsh")
        found = track.judging.agreement()
        (row,) = found.rows
        assert (row.level, row.assessors, row.topics, row.cells, row.same) == (
            "passage", ("ada", "bob"), 1, 4, 2,
        )  # fmt: skip
        # Same on 2 of 4; by chance (2 * 2 + 1 * 0 + 1 * 2) / 16 of Ada's 0, 0, 1, 2 and Bob's 0, 0, 2, 2.
        assert row.kappa.value == pytest.approx((2 / 4 - 6 / 16) / (1 - 6 / 16))
        assert [each[1:6] for each in found.disagreements] == [
            ("q1", "q1-d01", "", {"ada": 0, "bob": 2}, None),
            ("q1", "q1-d03", "", {"ada": 1, "bob": 0}, None),
        ]
        take(track.folder, query, "q1-d01", "", 1, "org", "read both", adjudicates=True)
        after = track.judging.agreement()
        assert after.rows == found.rows
        assert (after.disagreements[0].counts, after.disagreements[0].adjudicated) == (1, True)
        assert after.tables["disagreements"].rows[0] == (
            "passage", "q1", "q1-d01", "", "ada 0, bob 2", 2, 1, "yes",
        )  # fmt: skip
        assert found.facts["intervals"] == "intervals are 95%, over topics, with 5 topics or more"
        assert found.disagreements[0].ratings == {"ada": 0, "bob": 2}


def test_items_and_whole_passages_are_separate_and_three_people_have_a_joint_row(graded: Path) -> None:
    with campaign(graded, "") as track:
        judge_all(track, "q1/0")
        judge_all(track)
        record_assessment(track.folder, to_rate(track, "q1"), "q1-d00", "q1/0", 5, who="eve")
        rows = track.judging.agreement().rows
        assert [(row.level, row.assessors, row.cells) for row in rows] == [
            ("passage", ("ada", "bob"), 4),
            ("item", ("ada", "bob", "eve"), 4),
            ("item", ("ada", "bob"), 4),
            ("item", ("ada", "eve"), 1),
            ("item", ("bob", "eve"), 1),
        ]
        assert rows[1].kappa.value != rows[1].kappa.value


def test_without_double_judgments_there_is_no_agreement(graded: Path) -> None:
    with campaign(graded) as track:
        record_assessment(track.folder, to_rate(track, "q1"), "q1-d00", "", 1, who="ada")
        found = track.judging.agreement()
        assert (found.rows, found.disagreements) == ((), ())
