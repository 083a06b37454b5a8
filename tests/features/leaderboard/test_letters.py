"""Two runs share a letter if, and only if, they do not differ."""

from __future__ import annotations

import itertools
import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trecexam.features.leaderboard.differences import group_letters


def letters(text: str) -> set[str]:
    return set(re.findall(r"[a-zA-Z]\d*", text))


def matrix(n: int, pairs: list[tuple[int, int]]) -> np.ndarray:
    different = np.zeros((n, n), bool)
    for a, b in pairs:
        different[a, b] = different[b, a] = True
    return different


@given(st.integers(0, 14).flatmap(lambda n: st.tuples(st.just(n), st.randoms(), st.floats(0, 1))))
def test_two_runs_share_a_letter_if_and_only_if_they_do_not_differ(drawn: tuple) -> None:
    n, random, share = drawn
    pairs = [pair for pair in itertools.combinations(range(n), 2) if random.random() < share]
    groups = group_letters(matrix(n, pairs))
    assert len(groups) == n
    assert all(groups)
    for a, b in itertools.combinations(range(n), 2):
        assert letters(groups[a]).isdisjoint(letters(groups[b])) == ((a, b) in pairs)
    # No group is redundant.
    for letter in set().union(*map(letters, groups)):
        members = [run for run in range(n) if letter in letters(groups[run])]
        others = [letters(groups[run]) - {letter} for run in members]
        assert not all(a & b for a, b in itertools.combinations_with_replacement(others, 2))


def test_groups_of_neighbours_have_the_usual_letters() -> None:
    far = [(a, b) for a, b in itertools.combinations(range(5), 2) if b - a > 1]
    assert group_letters(matrix(5, far)) == ("a", "ab", "bc", "cd", "d")
    assert group_letters(matrix(3, [])) == ("a", "a", "a")
    assert group_letters(matrix(3, list(itertools.combinations(range(3), 2)))) == ("a", "b", "c")
    assert group_letters(matrix(1, [])) == ("a",)


def test_letters_after_the_52nd_have_a_number() -> None:
    groups = group_letters(matrix(106, list(itertools.combinations(range(106), 2))))
    assert [groups[place] for place in (0, 25, 26, 51, 52, 103, 104)] == [
        "a",
        "z",
        "A",
        "Z",
        "a1",
        "Z1",
        "a2",
    ]
    assert len(set(groups)) == 106
