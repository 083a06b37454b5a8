from __future__ import annotations

import math
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from campaign import SCALE, campaign, planned, to_rate
from hypothesis import given
from hypothesis import strategies as st

from converters.records import HumanRating, Item
from trecexam.config.sections import JudgingSection
from trecexam.errors import TrecexamError
from trecexam.extensions.campaign.alpha import alpha
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
        (row,) = found.table.rows
        assert row[:5] == ("passage", "ada, bob", 1, 4, 2)
        # Same on 2 of 4; by chance (2 * 2 + 1 * 0 + 1 * 2) / 16 of Ada's 0, 0, 1, 2 and Bob's 0, 0, 2, 2.
        assert found["kappa"] == pytest.approx([(2 / 4 - 6 / 16) / (1 - 6 / 16)])
        assert found.tables["disagreements"].rows == (
            ("passage", "q1", "q1-d01", "", "ada 0, bob 2", 2, None, "no"),
            ("passage", "q1", "q1-d03", "", "ada 1, bob 0", 1, None, "no"),
        )
        take(track.folder, query, "q1-d01", "", 1, "org", "read both", adjudicates=True)
        after = track.judging.agreement()
        assert after.table.rows == found.table.rows
        assert after.tables["disagreements"].rows[0] == (
            "passage", "q1", "q1-d01", "", "ada 0, bob 2", 2, 1, "yes",
        )  # fmt: skip
        assert found.facts["intervals"] == "intervals are 95%, over topics, with 5 topics or more"


def test_items_and_whole_passages_are_separate_and_three_people_have_a_joint_row(graded: Path) -> None:
    with campaign(graded, "") as track:
        judge_all(track, "q1/0")
        judge_all(track)
        query = to_rate(track, "q1")
        for who, doc_id in (("eve", "q1-d06"), ("ada", "q1-d06")):
            record_assessment(track.folder, query, doc_id, "q1/0", 4, who=who)
        pairs_alone = track.judging.agreement()
        assert pairs_alone.table.rows[1][1] == "ada, bob, eve"
        assert math.isnan(pairs_alone["kappa"][1])
        record_assessment(track.folder, query, "q1-d00", "q1/0", 5, who="eve")
        found = track.judging.agreement()
        assert [(*row[:2], row[3]) for row in found.table.rows] == [
            ("passage", "ada, bob", 4),
            ("item", "ada, bob, eve", 5),
            ("item", "ada, bob", 4),
            ("item", "ada, eve", 2),
            ("item", "bob, eve", 1),
        ]
        assert math.isnan(found["kappa"][1])


def test_without_double_judgments_there_is_no_agreement(graded: Path) -> None:
    with campaign(graded) as track:
        record_assessment(track.folder, to_rate(track, "q1"), "q1-d00", "", 1, who="ada")
        found = track.judging.agreement()
        assert (found.table.rows, found.tables["disagreements"].rows) == ((), ())


#: Four observers and twelve units, from Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), D.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]
UNITS = [[value for value in unit if value is not None] for unit in zip(*OBSERVERS, strict=True)]


def recounted(units: list[list[int]]) -> float:
    """Alpha by its definition, with a loop over all pairs of ratings."""
    units = [unit for unit in units if len(unit) > 1]
    values = [value for unit in units for value in unit]
    n = len(values)

    def difference(c: int, k: int) -> float:
        low, high = sorted((c, k))
        between = sum(low <= value <= high for value in values)
        return (between - (values.count(c) + values.count(k)) / 2) ** 2 if c != k else 0.0

    observed = sum(difference(a, b) / (len(unit) - 1) for unit in units for a, b in permutations(unit, 2)) / (
        n or 1
    )
    expected = sum(difference(a, b) for a, b in permutations(values, 2)) / (n * (n - 1) or 1)
    return 1 - observed / expected if expected else math.nan


def test_the_published_example_has_its_published_value() -> None:
    assert alpha([UNITS], 6).value == pytest.approx(0.815, abs=0.0005)


@given(st.lists(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=5), max_size=4))
def test_alpha_equals_a_naive_count_over_all_pairs(topics: list[list[list[int]]]) -> None:
    value = alpha(topics, 4).value
    assert value == pytest.approx(recounted([unit for units in topics for unit in units]), nan_ok=True)


@pytest.mark.slow
def test_the_interval_resamples_topics_and_needs_at_least_five() -> None:
    rng = np.random.default_rng(7)
    # Alternating topics with and without agreement.
    topics = [
        [[a, a if agree else int(rng.integers(4))] for a in rng.integers(0, 4, 30).tolist()]
        for agree in (True, False) * 5
    ]
    found = alpha(topics, 4)
    assert alpha(topics, 4) == found
    draws = [
        alpha([[cell for at in rng.integers(0, 10, 10) for cell in topics[at]]], 4).value for _ in range(300)
    ]
    assert [found.low, found.high] == pytest.approx(np.percentile(draws, [2.5, 97.5]), abs=0.06)
    # A topic without a cell of two ratings does not count.
    assert math.isfinite(alpha([*topics[:5], [[1]]], 4).low)
    few = alpha([*topics[:4], [[1]]], 4)
    assert math.isfinite(few.value)
    assert math.isnan(few.low)
    assert math.isnan(few.high)


def test_the_interval_has_its_nominal_coverage() -> None:
    rng = np.random.default_rng(3)

    def drawn(n_topics: int) -> list[list[list[int]]]:
        topics = []
        for _ in range(n_topics):
            truth, care = rng.integers(0, 4, 12), rng.random()
            topics.append(
                [[int(t) if rng.random() < care else int(rng.integers(4)) for _ in range(2)] for t in truth]
            )
        return topics

    truth = alpha(drawn(1500), 4).value
    intervals = [alpha(drawn(30), 4) for _ in range(40)]
    assert 0.82 < np.mean([each.low <= truth <= each.high for each in intervals]) <= 1


@pytest.mark.parametrize("topics", [[], [[]], [[[1]]], [[[2, 2], [2, 2, 2]]]])
def test_with_fewer_than_two_ratings_or_one_distinct_value_alpha_is_undefined(
    topics: list[list[list[int]]],
) -> None:
    found = alpha(topics, 4)
    assert math.isnan(found.value)
    assert math.isnan(found.low)


ITEMS = (Item("q1", "q1/0", "Why?", "question"), Item("q1", "q1/1", "How?", "nugget"))
YES_NO = JudgingScale(("no", "yes"), "a test")
QUERY = (Item("q1", "q1", "the query", "query"),)


@pytest.mark.parametrize(
    ("settings", "scale", "items", "asked"),
    [
        ({}, None, ITEMS, ("q1/0", "q1/1")),
        ({"whole_passage": True}, None, ITEMS, ("q1/0", "q1/1", "")),
        ({}, YES_NO, ITEMS, ("",)),
        ({"whole_passage": False}, YES_NO, ITEMS, ("q1/0", "q1/1")),
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
