from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.campaign.judge_next.arithmetic.chances import Opinions, cell_chances, passage_chances
from trecexam.scores.ratings import QueryRatings


def ratings_of(*rows: list[int]) -> QueryRatings:
    doc_ids = tuple(f"d{number}" for number in range(len(rows)))
    return QueryRatings("q1", doc_ids, len(rows[0]), np.array(rows, np.int8).reshape(len(rows), -1))


def unknown(q: QueryRatings, *others: list[list[int]]) -> Opinions:
    shape = (len(others), *q.ratings.shape)
    return Opinions(np.full((*q.ratings.shape, 6), np.nan), np.array(others, np.int8).reshape(shape))


def distributions(n_docs: int, n_items: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(6, 0.4), size=(n_docs, n_items))


@pytest.mark.parametrize("min_answers", [1, 2, 3, 4])
def test_with_grader_probabilities_the_best_ratings_are_those_over_all_combinations(min_answers: int) -> None:
    stated = distributions(4, 3, seed=min_answers)
    q = ratings_of(*stated.argmax(axis=2).tolist())
    found = passage_chances(q, Opinions(stated, np.zeros((0, 4, 3), np.int8)), min_answers)
    assert set(found.source.tolist()) == {"distribution"}
    for doc in range(4):
        expected = np.zeros(6)
        for combination in itertools.product(range(6), repeat=3):
            probability = np.prod([stated[doc, item, r] for item, r in enumerate(combination)])
            best = sorted(combination, reverse=True)
            expected[best[min_answers - 1] if min_answers <= 3 else 0] += probability
        assert found.values[doc] == pytest.approx(expected, abs=1e-8)


def test_an_item_without_a_rating_does_not_count_in_the_best() -> None:
    stated = np.full((1, 2, 6), np.nan)
    stated[0, 0] = [0.5, 0, 0, 0, 0.5, 0]
    found = passage_chances(ratings_of([0, -1]), Opinions(stated, np.zeros((0, 1, 2), np.int8)))
    assert found.values[0].tolist() == [0.5, 0, 0, 0, 0.5, 0]
    assert found.source[0] == "distribution"


def test_a_passage_with_a_rating_of_unknown_probability_is_judged_by_its_items() -> None:
    stated = np.full((1, 2, 6), np.nan)
    stated[0, 0] = [0.5, 0, 0, 0, 0.5, 0]
    found = passage_chances(ratings_of([0, 3]), Opinions(stated, np.zeros((0, 1, 2), np.int8)))
    assert found.values[0].tolist() == [0.5, 0, 0, 0.5, 0, 0]
    assert found.source[0] == "items"


def test_without_other_evidence_cells_and_passages_use_the_ratings_of_the_items() -> None:
    q = ratings_of([0, 0, 4, 5], [3, 3, 3, 3], [2, -1, 4, -1])
    cells, passages = cell_chances(q, unknown(q)), passage_chances(q, unknown(q))
    expected = [[0.5, 0, 0, 0, 0.25, 0.25], [0, 0, 0, 1, 0, 0], [0, 0, 0.5, 0, 0.5, 0]]
    assert passages.values.tolist() == expected
    assert set(passages.source.tolist()) == {"items"}
    assert cells.values[0, 2].tolist() == expected[0]
    assert cells.values[2, 0].tolist() == expected[2]
    assert cells.values[2, 1].tolist() == [0] * 6


def test_several_graders_have_one_vote_each() -> None:
    q = ratings_of([0, 4], [1, 1])
    opinions = unknown(q, [[3, 4], [-1, 1]], [[3, 0], [-1, 1]])
    cells = cell_chances(q, opinions)
    assert cells.values[0, 0] == pytest.approx([1 / 3, 0, 0, 2 / 3, 0, 0])
    assert cells.values[0, 1] == pytest.approx([1 / 3, 0, 0, 0, 2 / 3, 0])
    assert cells.source.tolist() == [["graders", "graders"], ["items", "graders"]]
    assert cells.values[1, 1].tolist() == [0, 1, 0, 0, 0, 0]
    # Whole passages: the best rating by each of the three; one grader alone rated all of the second passage.
    passages = passage_chances(q, opinions)
    assert passages.values[0] == pytest.approx([0, 0, 0, 1 / 3, 2 / 3, 0])
    assert passages.source.tolist() == ["graders", "items"]


def test_grader_probabilities_take_precedence_over_votes() -> None:
    q = ratings_of([4])
    stated = np.array([[[0, 0, 0, 0.25, 0.75, 0]]])
    opinions = Opinions(stated, np.array([[[0]]], np.int8))
    assert cell_chances(q, opinions).values[0, 0].tolist() == [0, 0, 0, 0.25, 0.75, 0]
    assert passage_chances(q, opinions).values[0].tolist() == [0, 0, 0, 0.25, 0.75, 0]


@given(
    st.integers(1, 4).flatmap(
        lambda n: st.lists(st.lists(st.integers(-1, 5), min_size=n, max_size=n), min_size=1, max_size=5)
    ),
    st.integers(1, 3),
    st.integers(0, 2),
    st.booleans(),
)
def test_probabilities_sum_to_exactly_one_where_there_is_a_rating(
    rows: list[list[int]], min_answers: int, n_others: int, with_distribution: bool
) -> None:
    q = ratings_of(*rows)
    rng = np.random.default_rng(len(rows))
    opinions = unknown(q, *(rng.integers(-1, 6, q.ratings.shape).tolist() for _ in range(n_others)))
    if with_distribution:
        opinions = Opinions(distributions(*q.ratings.shape, seed=1), opinions.others)
    cells, passages = cell_chances(q, opinions), passage_chances(q, opinions, min_answers)
    assert cells.values.sum(axis=-1) == pytest.approx((q.ratings >= 0).astype(float))
    assert passages.values.sum(axis=-1) == pytest.approx((q.ratings >= 0).any(axis=1).astype(float))
    assert min(cells.values.min(), passages.values.min()) >= 0
