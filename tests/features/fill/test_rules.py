from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.features.fill.rules import fitted, thresholds


def brute_kappa(pairs: list[tuple[int, int]], levels: list[int]) -> float:
    n = len(pairs)
    observed = sum((a - b) ** 2 for a, b in pairs) / n
    chance = sum((a - b) ** 2 for a, _ in pairs for _, b in pairs) / n**2
    return 1 - observed / chance if chance else 0.0


def test_thresholds_give_the_label_of_the_highest_reached_threshold() -> None:
    rule = thresholds({4: 1, 5: 3})
    assert [rule(label) for label in range(7)] == [0, 0, 0, 0, 1, 3, 3]
    assert str(rule) == "thresholds: below 4: 0, from 4: 1, from 5: 3"


@pytest.mark.parametrize(
    ("cuts", "reason"),
    [
        ({}, "LABEL=OFFICIAL"),
        ({4: 2, 5: 1}, "must not fall as labels rise: 4=2 and then 5=1"),
        ({1: -1}, "lower labels=0 and then 1=-1"),
    ],
)
def test_decreasing_or_invalid_thresholds_are_rejected(cuts: dict[int, int], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        thresholds(cuts)


@pytest.mark.parametrize(
    ("labels", "judgments", "why"),
    [
        ([], [], "no passage has both"),
        ([1, 2], [0, 0], "no official label but 0"),
        ([2, 2], [0, 1], "no automatic label but 2"),
        ([1, 2], [0, -1], "-1 is not a judgment"),
    ],
)
def test_a_fit_that_cannot_be_made_gives_the_reason(
    labels: list[int], judgments: list[int], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        fitted(labels, judgments)


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
