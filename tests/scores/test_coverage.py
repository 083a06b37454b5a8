from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from trecexam.scores import Cover, RubricJudgments
from trecexam.scores.ratings import QueryRatings, covered_items


def ranks_of(q: QueryRatings, rankings: list[list[str]]) -> np.ndarray[Any, Any]:
    """The rows of the rankings' passages; -1 for passages outside the pool, and beyond the end."""
    ranks = np.full((len(rankings), max(map(len, rankings), default=0)), -1, np.int32)
    for run, ranking in enumerate(rankings):
        for rank, doc_id in enumerate(ranking):
            ranks[run, rank] = q.doc_ids.index(doc_id) if doc_id in q.doc_ids else -1
    return ranks


@pytest.mark.parametrize("min_rating", [1, 4, 5])
def test_an_item_is_covered_if_a_passage_of_the_ranking_reaches_it(min_rating: int) -> None:
    chance = np.random.default_rng(3)
    q = QueryRatings("q", tuple("abcdefgh"), 5, chance.integers(-1, 6, (8, 5)).astype(np.int8))
    rankings = [["c", "zz", "a"], [], ["zz"], list("hgfedcba")]
    expected = [
        [
            any(doc in q.doc_ids and q.ratings[q.doc_ids.index(doc), i] >= min_rating for doc in ranking)
            for i in range(5)
        ]
        for ranking in rankings
    ]
    found = covered_items(q, ranks_of(q, rankings), min_rating)
    assert_array_equal(found, expected)
    cover = Cover(rel=min_rating)
    values = RubricJudgments([q]).evaluator([cover], ["q"])({"q": rankings[3]})
    assert found[3].mean() == values["q"][str(cover)]
