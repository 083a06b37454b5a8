from __future__ import annotations

import random

import numpy as np
import pytest

from trecexam.features.history.arithmetic import Counting, LabelChange, counting
from trecexam.scores.evaluate import RubricJudgments
from trecexam.scores.labels import labels
from trecexam.scores.ratings import QueryRatings

DOCS = tuple(f"d{n:02}" for n in range(12))
DEPTH = 6
IMPORTANCES = ("vital", "okay", "")
MEASURES = (
    "P(rel=4)@5", "P(rel=3)@12", "nDCG@5", "AP(rel=4)", "R(rel=4)@5", "RR(rel=3)", "RR(rel=3)@5",
    "Rprec(rel=4)", "Success(rel=5)@5", "Bpref(rel=3)", "Judged@5", "P(rel=4,judged_only=True)@5",
    "Cover(rel=4,weights='vital')@5", "nCover(rel=4,weights='importance')@5", "Cover(rel=4,partial=2)@5",
    "Cover(rel=4)@5", "Cover(rel=3)@5", "nCover(rel=4)@5", "alpha_nDCG@5", "StRecall@5", "SetP(rel=4)",
)  # fmt: skip


def query(rng: random.Random) -> QueryRatings:
    matrix = [[rng.choice((-1, 0, 0, 0, 0, 0, 2, 2, 3, 4, 5)) for _ in range(3)] for _ in DOCS]
    rated = [row if rng.random() < 0.7 else [-1] * 3 for row in matrix]
    return QueryRatings("q", DOCS, 3, np.array(rated, np.int8), importances=IMPORTANCES)


def label_change(old: QueryRatings, new: QueryRatings, row: int) -> LabelChange:
    before, after = old.ratings[row] >= 4, new.ratings[row] >= 4
    return LabelChange(
        "q",
        DOCS[row],
        labels(old).get(DOCS[row]),
        labels(new).get(DOCS[row]),
        tuple(map(str, np.flatnonzero(after & ~before))),
        tuple(map(str, np.flatnonzero(before & ~after))),
    )


@pytest.mark.parametrize("name", MEASURES)
def test_a_change_that_is_not_counted_changes_no_value(name: str) -> None:
    rng = random.Random(name)
    counts = counting(name, 4, DEPTH)
    changed = 0
    for _ in range(300):
        old = query(rng)
        ratings = old.ratings.copy()
        row = rng.randrange(len(DOCS))
        ratings[row, rng.randrange(3)] = rng.choice((-1, 0, 2, 3, 4, 5))
        new = QueryRatings("q", DOCS, 3, ratings, importances=IMPORTANCES)
        ranking = rng.sample(DOCS, len(DOCS))
        values = [
            RubricJudgments([state]).evaluator([name], ["q"])({"q": ranking})["q"][name]
            for state in (old, new)
        ]
        if values[0] != values[1]:
            changed += 1
            # They count items from another rating on than those that are known.
            if name not in {"Cover(rel=3)@5", "Cover(rel=4,partial=2)@5"}:
                assert counts.decides(label_change(old, new, row))
            if counts.local:
                assert ranking.index(DOCS[row]) < DEPTH
    assert changed, "nothing was tested"


def test_measures_to_the_pools_depth_see_a_runs_own_passages_alone() -> None:
    assert counting("P(rel=4)@5", 4, 6) == Counting(rel=4, local=True)
    assert counting("P(rel=4)@12", 4, 6) == Counting(rel=4)
    assert counting("AP(rel=4)", 4, 6) == Counting(rel=4)
    assert counting("nDCG@5", 4, 6) == Counting()
    assert counting("Cover(rel=4)@5", 4, 6) == Counting(items=True, local=True)
    assert counting("nCover(rel=4)@5", 4, 6) == Counting(items=True)
    weighted = Counting(items=True, local=True, importance=True)
    assert counting("Cover(rel=4,weights=vital)@5", 4, 6) == weighted
    assert counting("Cover(rel=4,partial=2)@5", 4, 6) == Counting(local=True)
