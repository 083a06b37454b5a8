"""Expected effects equal full evaluations, one for each possible rating."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from trecexam.extensions.campaign.judge_next.arithmetic import what_if
from trecexam.extensions.campaign.judge_next.arithmetic.chances import Chances
from trecexam.extensions.campaign.judge_next.arithmetic.what_if import (
    Board,
    PossibleJudgments,
    Scoring,
    expected_effects,
)
from trecexam.scores.evaluate import RubricJudgments, measure
from trecexam.scores.labels import labels
from trecexam.scores.ratings import QueryRatings

Rankings = Sequence[dict[str, list[str]]]


def means_of(queries: list[QueryRatings], runs: Rankings, scoring: Scoring) -> list[float]:
    judgments = RubricJudgments(queries, scoring.rule, scoring.min_rating, scoring.min_answers)
    ids = [q.query_id for q in queries]
    evaluate = judgments.evaluator([scoring.measure], ids)
    return [math.fsum(evaluate(run)[i][str(scoring.measure)] for i in ids) / len(ids) for run in runs]


def board_of(queries: list[QueryRatings], runs: Rankings, scoring: Scoring) -> Board:
    ids = [q.query_id for q in queries]
    return Board(
        np.array(means_of(queries, runs, scoring)),
        {i: [run.get(i, []) for run in runs] for i in ids},
        {i: np.full(len(runs), 1 / len(ids)) for i in ids},
    )


def naive(before: list[float], after: list[float]) -> tuple[float, float]:
    """(swaps, mean change of differences) between two leaderboards."""

    def sign(a: float, b: float) -> int:
        a, b = round(a, 12), round(b, 12)
        return (a > b) - (a < b)

    pairs = list(itertools.combinations(range(len(before)), 2))
    swaps = sum(abs(sign(after[a], after[b]) - sign(before[a], before[b])) / 2 for a, b in pairs)
    moved = (abs((after[a] - after[b]) - (before[a] - before[b])) for a, b in pairs)
    return swaps, sum(moved) / len(pairs)


def chances_for(shape: tuple[int, ...], seed: int) -> Chances:
    """Random probabilities, many of them 0."""
    rng = np.random.default_rng(seed)
    values = rng.random((*shape, 6)) * (rng.random((*shape, 6)) < 0.5)
    values[..., 0] += 0.01
    return Chances(values / values.sum(axis=-1, keepdims=True), np.full(shape, "items"))


def example(seed: int) -> tuple[list[QueryRatings], list[dict[str, list[str]]]]:
    """Three queries of seven passages, one of them without ratings, and five runs, two of them alike."""
    rng = np.random.default_rng(seed)
    doc_ids = tuple(f"d{doc:02}" for doc in range(7))
    queries = []
    for number in range(1, 4):
        ratings = rng.choice([-1, 0, 0, 1, 2, 3, 4, 5], size=(7, 3)).astype(np.int8)
        ratings[6] = -1
        importances = ("okay", "", "vital")[number - 1 :] + ("vital", "okay", "")[: number - 1]
        weights = (2.5, -4.0, 1.0) if number < 3 else None
        queries.append(
            QueryRatings(f"q{number}", doc_ids, 3, ratings, importances=importances, weights=weights)
        )
    known = [*doc_ids, "x1", "x2"]
    runs = [{q.query_id: rng.permutation(known)[:6].tolist() for q in queries} for _ in range(4)]
    del runs[1]["q2"]
    runs.append(dict(runs[0]))
    return queries, runs


ON_LABELS = ["P(rel=2)@3", "nDCG@4", "AP(rel=2)", "RR(rel=2)", "P(rel=2,judged_only=True)@2", "Bpref(rel=2)"]
ON_ITEMS = [
    "Cover(rel=4)@3", "nCover(rel=3)@3", "alpha_nDCG@3", "alpha_nDCG(rel=2)@3", "StRecall@2",
    "Cover(rel=4,partial=2)@3", "nCover(rel=5,partial=3,weights='importance')@3",
    "Cover(rel=3,weights='vital')@3", "Cover(rel=4,partial=2,weights='item')@3",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["max", "count"])
@pytest.mark.parametrize("min_answers", [1, 2])
@pytest.mark.parametrize("name", ON_LABELS)
def test_the_effect_of_judging_a_passage_equals_full_evaluations(
    name: str, rule: str, min_answers: int
) -> None:
    queries, runs = example(3)
    queries[1] = replace(queries[1], human={"d03": 5})
    scoring = Scoring(measure(name), rule, 3, min_answers)  # type: ignore[arg-type]
    board = board_of(queries, runs, scoring)
    before = board.means.tolist()
    some = 0.0
    for place, q in enumerate(queries):
        chances = chances_for((7,), place)
        wanted = np.array([doc % 3 != 2 for doc in range(7)])
        found = expected_effects(q, PossibleJudgments(chances, wanted, np.arange(7)), board, scoring)
        now = labels(q, scoring.rule, 3, min_answers)
        for doc, doc_id in enumerate(q.doc_ids):
            assert found.now[doc] == now.get(doc_id, -1)
            expected, p_change = np.zeros(2), 0.0
            for rating in range(6):
                judged = replace(q, human={**q.human, doc_id: rating})
                after = means_of([*queries[:place], judged, *queries[place + 1 :]], runs, scoring)
                expected += chances.values[doc, rating] * np.array(naive(before, after))
                label = labels(judged, scoring.rule, 3, min_answers)[doc_id]
                p_change += chances.values[doc, rating] * (label != now.get(doc_id, -1))
            if wanted[doc]:
                assert (found.swaps[doc], found.change[doc]) == pytest.approx(tuple(expected))
            else:
                assert (found.swaps[doc], found.change[doc]) == (0, 0)
            assert found.p_change[doc] == pytest.approx(p_change)
            some += found.change[doc]
    assert some > 0


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["max", "count"])
@pytest.mark.parametrize("name", [*ON_ITEMS, "P(rel=2)@3", "nDCG@4"])
def test_the_effect_of_judging_a_cell_equals_full_evaluations(name: str, rule: str) -> None:
    queries, runs = example(5)
    queries[1] = replace(queries[1], human={"d03": 5})
    scoring = Scoring(measure(name), rule, 3)  # type: ignore[arg-type]
    board = board_of(queries, runs, scoring)
    before = board.means.tolist()
    some = 0.0
    for place, q in enumerate(queries):
        chances = chances_for((7, 3), place)
        wanted = q.ratings >= 0
        found = expected_effects(q, PossibleJudgments(chances, wanted, np.arange(7)), board, scoring)
        assert found.now.tolist() == q.ratings.tolist()
        for doc, item in zip(*np.nonzero(wanted), strict=True):
            expected = np.zeros(2)
            for rating in range(6):
                ratings = q.ratings.copy()
                ratings[doc, item] = rating
                judged = replace(q, ratings=ratings)
                after = means_of([*queries[:place], judged, *queries[place + 1 :]], runs, scoring)
                expected += chances.values[doc, item, rating] * np.array(naive(before, after))
            assert (found.swaps[doc, item], found.change[doc, item]) == pytest.approx(tuple(expected))
            assert found.p_change[doc, item] == pytest.approx(
                1 - chances.values[doc, item, q.ratings[doc, item]]
            )
            some += found.swaps[doc, item]
    assert some > 0


@pytest.mark.parametrize("name", ["nDCG@4", "nCover(rel=3)@3"])
def test_a_judgment_counts_for_every_passage_with_the_same_text(name: str) -> None:
    (q, *_), runs = example(7)
    q = replace(q, ratings=q.ratings.copy())
    q.ratings[2] = q.ratings[5] = [1, 4, 0]
    scoring = Scoring(measure(name))
    board = board_of([q], runs, scoring)
    alike = np.array([0, 1, 2, 3, 4, 2, 6])
    cell = scoring.on_items
    values = np.zeros((7, 3, 6) if cell else (7, 6))
    values[..., 5] = 1
    chances = Chances(values, np.full(values.shape[:-1], "items"))
    wanted = np.ones(values.shape[:-1], np.bool_)
    found = expected_effects(q, PossibleJudgments(chances, wanted, alike), board, scoring)
    if cell:
        ratings = q.ratings.copy()
        ratings[[2, 5], 0] = 5
        judged, place = replace(q, ratings=ratings), (2, 0)
    else:
        judged, place = replace(q, human={"d02": 5, "d05": 5}), (2,)
    expected = naive(board.means.tolist(), means_of([judged], runs, scoring))
    assert expected[1] > 0
    assert (found.swaps[place], found.change[place]) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["nDCG@4", "Cover(rel=4)@3"])
def test_working_in_small_chunks_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, runs = example(11)
    scoring = Scoring(measure(name))
    board = board_of(queries, runs, scoring)
    shape = (7, 3) if scoring.on_items else (7,)
    asked = PossibleJudgments(chances_for(shape, 1), np.ones(shape, np.bool_), np.arange(7))
    whole = expected_effects(queries[0], asked, board, scoring)
    monkeypatch.setattr(what_if, "_ROWS", 1)
    monkeypatch.setattr(what_if, "_CELLS", 1)
    parts = expected_effects(queries[0], asked, board, scoring)
    for one, other in zip(whole, parts, strict=True):
        assert one == pytest.approx(other, abs=1e-12)


def test_a_query_excluded_from_the_mean_of_a_run_does_not_change_it() -> None:
    queries, runs = example(3)
    scoring = Scoring(measure("P(rel=4)@3"))
    board = board_of(queries, runs, scoring)
    asked = PossibleJudgments(chances_for((7,), 1), np.ones(7, np.bool_), np.arange(7))
    silent = replace(board, weights={q.query_id: np.zeros(len(runs)) for q in queries})
    assert expected_effects(queries[0], asked, board, scoring).change.any()
    assert not expected_effects(queries[0], asked, silent, scoring).change.any()


def test_if_all_labels_are_certain_no_effect_is_expected() -> None:
    queries, runs = example(3)
    q = queries[0]
    scoring = Scoring(measure("nDCG@4"))
    now = np.maximum(q.ratings.max(axis=1), 0)
    sure = Chances((now[:, None] == np.arange(6)).astype(float), np.full(7, "distribution"))
    found = expected_effects(
        q, PossibleJudgments(sure, q.rated, np.arange(7)), board_of(queries, runs, scoring), scoring
    )
    assert not found.swaps.any()
    assert not found.change.any()
    assert not found.p_change[q.rated].any()


def test_for_a_measure_on_items_no_whole_passage_is_suggested() -> None:
    queries, runs = example(3)
    scoring = Scoring(measure("Cover(rel=4)@3"))
    asked = PossibleJudgments(chances_for((7,), 1), np.ones(7, np.bool_), np.arange(7))
    with pytest.raises(ValueError, match="does not use labels"):
        expected_effects(queries[0], asked, board_of(queries, runs, scoring), scoring)
