"""Expected changes equal full evaluations, one for each possible rating."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from column_cases import evaluated
from numpy.typing import NDArray

from trecexam.extensions.campaign.judge_next import expected_change as tried
from trecexam.scores.columns import Judged
from trecexam.scores.labels import labels
from trecexam.scores.measures import measure
from trecexam.scores.ratings import QueryRatings

Rankings = Sequence[dict[str, list[str]]]


def means_of(
    queries: list[QueryRatings], runs: Rankings, name: str, rule: str = "max", min_answers: int = 1
) -> list[float]:
    judged = Judged.from_ratings(queries, rule, 3, min_answers)  # type: ignore[arg-type]
    values = [evaluated([name], judged, run) for run in runs]
    return [
        math.fsum(value for of_query in each.values() for value in of_query.values()) / len(queries)
        for each in values
    ]


def expected(
    q: QueryRatings,
    runs: Rankings,
    name: str,
    *,
    alike: Sequence[int] = range(7),
    wanted: Sequence[bool] = (True,) * 7,
    weight: float = 1.0,
    rule: str = "max",
    min_answers: int = 1,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    return tried.expected_change(
        q, np.array(alike), np.array(wanted), [run.get(q.query_id, []) for run in runs],
        np.full(len(runs), weight), measure(name),
        partial(labels, rule=rule, min_rating=3, min_answers=min_answers),  # type: ignore[arg-type]
    )  # fmt: skip


def naive(before: list[float], after: list[float]) -> float:
    """The mean change of differences between two leaderboards."""
    pairs = list(itertools.combinations(range(len(before)), 2))
    return sum(abs((after[a] - after[b]) - (before[a] - before[b])) for a, b in pairs) / len(pairs)


def example(seed: int) -> tuple[list[QueryRatings], list[dict[str, list[str]]]]:
    """Three queries of seven passages, one of them without ratings, and five runs, two of them alike."""
    rng = np.random.default_rng(seed)
    doc_ids = tuple(f"d{doc:02}" for doc in range(7))
    queries = []
    for number in range(1, 4):
        ratings = rng.choice([-1, 0, 0, 1, 2, 3, 4, 5], size=(7, 3)).astype(np.int8)
        ratings[6] = -1
        queries.append(QueryRatings(f"q{number}", doc_ids, 3, ratings))
    known = [*doc_ids, "x1", "x2"]
    runs = [{q.query_id: rng.permutation(known)[:6].tolist() for q in queries} for _ in range(4)]
    del runs[1]["q2"]
    runs.append(dict(runs[0]))
    return queries, runs


@pytest.mark.parametrize(("rule", "min_answers"), [("max", 1), ("max", 2), ("count", 1), ("count", 2)])
@pytest.mark.parametrize("name", ["P@3", "nDCG@4", "AP", "P(judged_only=True)@2"])
def test_the_change_by_judging_a_passage_equals_full_evaluations(
    name: str, rule: str, min_answers: int
) -> None:
    queries, runs = example(3)
    queries[1] = replace(queries[1], human={"d03": 5})
    before = means_of(queries, runs, name, rule, min_answers)
    place, q = 1, queries[1]
    labelled, found = expected(
        q, runs, name, wanted=[doc % 3 != 2 for doc in range(7)], weight=1 / 3, rule=rule,
        min_answers=min_answers,
    )  # fmt: skip
    now = labels(q, rule, 3, min_answers)  # type: ignore[arg-type]
    for doc, doc_id in enumerate(q.doc_ids):
        assert labelled[doc] == now.get(doc_id, -1)
        change = 0.0
        ratings = [rating for rating in q.ratings[doc].tolist() if rating >= 0]
        for rating in ratings:
            judged = replace(q, human={**q.human, doc_id: rating})
            after = means_of([*queries[:place], judged, *queries[place + 1 :]], runs, name, rule, min_answers)
            change += naive(before, after) / len(ratings)
        assert found[doc] == pytest.approx(0 if doc % 3 == 2 else change)
    assert found.any()


def test_a_judgment_counts_for_every_passage_with_the_same_text() -> None:
    (q, *_), runs = example(7)
    q = replace(q, ratings=q.ratings.copy())
    q.ratings[2] = q.ratings[5] = [1, 4, 1]
    _, found = expected(q, runs, "nDCG@4", alike=[0, 1, 2, 3, 4, 2, 6])
    judged = replace(q, human={"d02": 1, "d05": 1})
    change = naive(means_of([q], runs, "nDCG@4"), means_of([judged], runs, "nDCG@4"))
    assert change > 0
    assert found[2] == pytest.approx(2 / 3 * change)


def test_working_in_small_chunks_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    (q, *_), runs = example(11)
    _, whole = expected(q, runs, "nDCG@4")
    monkeypatch.setattr(tried, "_ROWS", 1)
    assert expected(q, runs, "nDCG@4")[1] == pytest.approx(whole, abs=1e-12)


def test_a_query_excluded_from_the_mean_of_a_run_does_not_change_it() -> None:
    (q, *_), runs = example(3)
    assert expected(q, runs, "P(rel=4)@3")[1].any()
    assert not expected(q, runs, "P(rel=4)@3", weight=0.0)[1].any()
