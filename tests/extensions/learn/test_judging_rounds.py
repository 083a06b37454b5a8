"""The order of passages in a plan: by weight, with a random share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.learn.judging_order import judging_rounds
from trecexam.scores.retrieved import retrieved_weights

SIZES = st.lists(st.integers(0, 12), min_size=1, max_size=6)


def drawn(sizes: list[int], seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 5, n) / 2 for n in sizes], [rng.random(n) < 0.7 for n in sizes]


def test_the_weight_of_a_passage_sums_over_its_ranks_in_runs() -> None:
    ranks = np.full((2, 25), -1, np.int32)
    ranks[0, :22] = np.arange(22)
    ranks[1, :2] = [1, 0]
    weights = retrieved_weights(ranks, 23)
    assert weights[0] == pytest.approx(1 + 1 / np.log2(3))
    assert weights[9] == pytest.approx(1 / np.log2(11))
    assert weights[[10, 19]].tolist() == [0.1, 0.1]
    assert weights[[20, 21, 22]].tolist() == [0, 0, 0]


@given(SIZES, st.integers(0, 5), st.floats(0, 1))
def test_each_unjudged_passage_is_planned_once_with_no_query_twice_per_round(
    sizes: list[int], seed: int, share: float
) -> None:
    weights, unjudged = drawn(sizes, seed)
    rounds = list(judging_rounds(weights, unjudged, share, seed))
    planned = [row[:2] for of_round in rounds for row in of_round]
    assert sorted(planned) == [(at, row) for at, of in enumerate(unjudged) for row in np.flatnonzero(of)]
    for number, of_round in enumerate(rounds):
        left = [at for at, of_query in enumerate(unjudged) if of_query.sum() > number]
        assert [query for query, _, _ in of_round] == left
    assert rounds == list(judging_rounds(weights, unjudged, share, seed))


@given(SIZES, st.integers(0, 5), st.floats(0, 1))
def test_the_random_share_holds_after_each_round_and_the_rest_is_by_weight(
    sizes: list[int], seed: int, share: float
) -> None:
    weights, unjudged = drawn(sizes, seed)
    left = [np.flatnonzero(of_query).tolist() for of_query in unjudged]
    n = n_random = 0
    for of_round in judging_rounds(weights, unjudged, share, seed):
        for query, passage, is_random in of_round:
            if not is_random:
                best = max(left[query], key=lambda at: (weights[query][at], -at))
                assert passage == best
            left[query].remove(passage)
            n, n_random = n + 1, n_random + is_random
        assert abs(n_random - share * n) <= 1


def test_share_0_gives_no_random_passages_and_share_1_only_random_ones() -> None:
    weights, unjudged = drawn([9, 9], 1)
    for share in (0.0, 1.0):
        rounds = judging_rounds(weights, unjudged, share, 0)
        assert {is_random for of_round in rounds for _, _, is_random in of_round} == {bool(share)}
