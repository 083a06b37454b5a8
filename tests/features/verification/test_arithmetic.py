from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from converters.records import Item
from trecexam.features.verification.arithmetic import (
    ItemReach,
    item_reaches,
    worst_first,
)
from trecexam.scores.ratings import QueryRatings

N_ITEMS = 3
ITEMS = [Item("q1", f"i{number}", f"item {number}") for number in range(N_ITEMS)]
#: For each passage its ratings and its judgment; None: not judged.
PASSAGES = st.lists(
    st.tuples(
        st.tuples(*[st.integers(-1, 5)] * N_ITEMS), st.one_of(st.none(), st.integers(-2, 3))
    ),
    min_size=1,
    max_size=25,
)  # fmt: skip
Passages = list[tuple[tuple[int, ...], int | None]]


def made(passages: Passages) -> tuple[QueryRatings, dict[str, int]]:
    doc_ids = tuple(f"d{number:02}" for number in range(len(passages)))
    ratings = np.array([row for row, _ in passages], np.int8).reshape(len(passages), -1)
    judgments = {d: j for d, (_, j) in zip(doc_ids, passages, strict=True) if j is not None}
    return QueryRatings("q1", doc_ids, ratings.shape[1], ratings), judgments


def reach(relevant: int, hits: int, nonrelevant: int, false: int, index: int = 1) -> ItemReach:
    return ItemReach("q1", index, ITEMS[0], relevant, hits, 0, nonrelevant, false, 0)


@given(PASSAGES, st.integers(1, 5), st.integers(1, 3))
def test_counts_of_an_item_equal_a_loop_over_passages(
    passages: Passages, min_rating: int, min_relevant: int
) -> None:
    found = item_reaches(*with_items(passages), min_rating, min_relevant)
    for place, item in enumerate(found):
        expected = dict.fromkeys(("rel", "rel_hit", "rel_only", "non", "non_hit", "non_only"), 0)
        for ratings, judgment in passages:
            if judgment is None or ratings[place] == -1:
                continue
            kind = "rel" if judgment >= min_relevant else "non"
            expected[kind] += 1
            if ratings[place] >= min_rating:
                expected[f"{kind}_hit"] += 1
                others = [rating for other, rating in enumerate(ratings) if other != place]
                expected[f"{kind}_only"] += max(others) < min_rating
        assert (
            item.relevant,
            item.relevant_reached,
            item.relevant_only,
            item.nonrelevant,
            item.nonrelevant_reached,
            item.nonrelevant_only,
        ) == tuple(expected.values())
        assert (item.index, item.item) == (place + 1, ITEMS[place])


def with_items(passages: Passages) -> tuple[QueryRatings, list[Item], dict[str, int]]:
    q, judgments = made(passages)
    return q, ITEMS, judgments


@given(PASSAGES)
def test_phi_equals_the_pearson_correlation_of_reaching_and_relevance(passages: Passages) -> None:
    for place, item in enumerate(item_reaches(*with_items(passages), 4, 1)):
        kept = [(r[place] >= 4, j >= 1) for r, j in passages if j is not None and r[place] != -1]
        reached, relevant = [a for a, _ in kept], [b for _, b in kept]
        if len(set(reached)) < 2 or len(set(relevant)) < 2:
            assert math.isnan(item.phi)
            assert item.note
        else:
            assert item.phi == pytest.approx(stats.pearsonr(reached, relevant).statistic)
            assert item.phi == pytest.approx(stats.pointbiserialr(reached, relevant).statistic)
            assert not item.note


@pytest.mark.parametrize(
    ("counts", "note"),
    [
        ((5, 5, 5, 5), "reached by all"),
        ((5, 0, 5, 0), "reached by none"),
        ((0, 0, 5, 2), "no relevant passage"),
        ((5, 2, 0, 0), "no non-relevant passage"),
        ((0, 0, 0, 0), "no judged passage is rated on it"),
        ((5, 5, 5, 0), ""),
    ],
)
def test_an_item_that_cannot_discriminate_has_a_reason(counts: tuple[int, int, int, int], note: str) -> None:
    item = reach(*counts)
    assert item.note == note
    assert math.isnan(item.phi) == bool(note)


def test_items_are_sorted_by_the_requested_statistic() -> None:
    inverted, useless, all_of_them = reach(5, 0, 5, 4, 1), reach(5, 0, 5, 0, 2), reach(5, 5, 5, 5, 3)
    good, lax = reach(5, 5, 5, 0, 4), reach(5, 5, 50, 6, 5)
    items = [good, useless, lax, all_of_them, inverted]
    assert worst_first(items) == [inverted, all_of_them, useless, lax, good]
    assert worst_first(items, "nonrelevant") == [lax, all_of_them, inverted, useless, good]
    assert worst_first(items, "precision") == [inverted, lax, all_of_them, good, useless]
