from __future__ import annotations

import itertools
import math
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.features.fill.rules import fitted, label_confidences
from trecexam.scores.labels import labels
from trecexam.scores.ratings import QueryRatings


def brute_kappa(pairs: list[tuple[int, int]], levels: list[int]) -> float:
    n = len(pairs)
    observed = sum((a - b) ** 2 for a, b in pairs) / n
    chance = sum((a - b) ** 2 for a, _ in pairs for _, b in pairs) / n**2
    return 1 - observed / chance if chance else 0.0


def test_a_fit_that_cannot_be_made_gives_the_reason() -> None:
    with pytest.raises(ValueError, match="no official label but 0"):
        fitted([1, 2], [0, 0])
    with pytest.raises(ValueError, match="no automatic label but 2"):
        fitted([2, 2], [0, 1])


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=2, max_size=30).filter(
        lambda pairs: len({a for a, _ in pairs}) > 1 and len({b for _, b in pairs}) > 1
    )
)
def test_no_monotone_rule_agrees_better_than_the_fitted_one(pairs: list[tuple[int, int]]) -> None:
    levels = sorted({b for _, b in pairs})
    rule = fitted([a for a, _ in pairs], [b for _, b in pairs])
    assert brute_kappa([(rule(a), b) for a, b in pairs], levels) == pytest.approx(rule.kappa)
    for given_levels in itertools.product(levels, repeat=6):
        if list(given_levels) == sorted(given_levels):
            other = brute_kappa([(given_levels[a], b) for a, b in pairs], levels)
            assert other <= rule.kappa + 1e-9
    assert [rule(label) for label in range(6)] == sorted(rule(label) for label in range(6))


# Confidences of labels.


Rule = Literal["max", "count"]


def query(ratings: list[list[int]]) -> QueryRatings:
    matrix = np.array(ratings, np.int8)
    return QueryRatings("q", tuple(f"d{n}" for n in range(len(matrix))), matrix.shape[1], matrix)


@given(
    st.lists(st.integers(-1, 5), min_size=1, max_size=4),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["max", "count"]),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_confidence_is_the_probability_of_all_outcomes_with_that_label(
    ratings: list[int], seed: int, rule: Rule, min_rating: int, min_answers: int
) -> None:
    q = query([ratings])
    chances = np.random.default_rng(seed).dirichlet(np.ones(6), size=(1, len(ratings)))
    found = label_confidences(q, chances, rule, min_rating, min_answers)
    label = labels(q, rule, min_rating, min_answers)
    if not label:
        assert found == {}
        return
    expected = 0.0
    rated = [place for place, rating in enumerate(ratings) if rating >= 0]
    for outcome in itertools.product(range(6), repeat=len(rated)):
        drawn = list(ratings)
        for place, rating in zip(rated, outcome, strict=True):
            drawn[place] = rating
        if labels(query([drawn]), rule, min_rating, min_answers) == label:
            expected += math.prod(chances[0, p, r] for p, r in zip(rated, outcome, strict=True))
    assert found == {"d0": pytest.approx(expected)}


def test_a_passage_with_a_rating_of_unknown_probability_has_no_confidence() -> None:
    chances = np.full((3, 2, 6), np.nan)
    chances[0] = chances[1, 0] = 1 / 6
    assert set(label_confidences(query([[3, 1], [2, 2], [0, 0]]), chances)) == {"d0"}


def test_rounded_probabilities_are_normalised() -> None:
    chances = np.array([[[0.333333, 0.333333, 0.333333, 0, 0, 0]]])
    assert label_confidences(query([[2]]), chances)["d0"] == pytest.approx(1 / 3, abs=1e-12)
