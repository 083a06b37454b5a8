"""Cover with the weights of the bank, some negative: against naive loops, and on columns."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from column_cases import evaluated
from hypothesis import given
from hypothesis import strategies as st
from naive_cover import as_run, per_query

from trecexam.scores import Cover, nCover
from trecexam.scores.columns import Evaluator, Judged
from trecexam.scores.labels import label_qrels
from trecexam.scores.measures import measure
from trecexam.scores.ratings import QueryRatings

COMPLIANCE = Cover(rel=5, partial=3, weights="item")


def naive(q: QueryRatings, ranking: list[str], rel: int, k: int | None, partial: int | None) -> float:
    """(sum of weight x reached) / (sum of positive weights), item by item, in exact numbers."""
    ratings = dict(zip(q.doc_ids, q.ratings.tolist(), strict=True))
    weights = [Fraction(weight) for weight in q.weights or (1,) * q.n_items]
    covered = Fraction(0)
    for item, weight in enumerate(weights):
        best = max((ratings[doc_id][item] for doc_id in ranking[:k] if doc_id in ratings), default=-1)
        if best >= rel:
            covered += weight
        elif partial is not None and best >= partial:
            covered += weight / 2
    whole = sum(weight for weight in weights if weight > 0)
    return float(covered / whole) if whole else 0.0


def weighted(queries: list[QueryRatings], seed: int = 3) -> list[QueryRatings]:
    """With weights; the last query has only negative ones, and that before it has none."""
    rng = random.Random(seed)
    weights = [tuple(rng.choice((-7.5, -3, 0.1, 0.7, 2, 5)) for _ in range(q.n_items)) for q in queries]
    queries = [replace(q, weights=of_query) for q, of_query in zip(queries, weights, strict=True)]
    queries[-2] = replace(queries[-2], weights=None)
    queries[-1] = replace(queries[-1], weights=tuple(-abs(weight) for weight in weights[-1]))
    return queries


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(
            st.lists(st.lists(st.integers(-1, 5), min_size=n, max_size=n), min_size=1, max_size=4),
            st.lists(st.floats(-100, 100).filter(lambda weight: abs(weight) > 1e-3), min_size=n, max_size=n),
        )
    )
)
def test_for_any_weights_coverage_equals_the_formula_and_is_at_most_one(
    drawn: tuple[list[list[int]], list[float]],
) -> None:
    rows, weights = drawn
    ratings = np.array(rows, np.int8)
    q = QueryRatings("q", tuple(map(str, range(len(rows)))), len(weights), ratings, weights=tuple(weights))
    docs = list(q.doc_ids)
    value = evaluated([COMPLIANCE], Judged.from_ratings([q]), {"q": docs})["q"][str(COMPLIANCE)]
    assert value == pytest.approx(naive(q, docs, 5, None, 3), abs=1e-9)
    assert value <= 1 + 1e-12


def test_the_strict_score_of_research_rubrics_is_that_without_half_credit() -> None:
    assert measure("strict_compliance_score") == Cover(rel=5, weights="item")


def test_ncover_with_item_weights_is_rejected() -> None:
    with pytest.raises(ValueError, match="weights='item' are of Cover alone"):
        measure("nCover(rel=4,weights=item)@20")
    with pytest.raises(AssertionError):
        nCover(weights="item").validate_params()


def test_without_weights_the_measure_is_rejected_and_not_computed_with_weights_of_one(
    queries: list[QueryRatings], rankings: dict[str, list[str]]
) -> None:
    with pytest.raises(ValueError, match="needs weights of items"):
        per_query(COMPLIANCE, list(label_qrels(queries)), as_run(rankings))
    with pytest.raises(ValueError, match="needs weights of items"):
        Evaluator([COMPLIANCE], Judged.from_ratings(queries))


def test_weights_and_importances_must_agree(
    queries: list[QueryRatings], rankings: dict[str, list[str]]
) -> None:
    rows = list(label_qrels(weighted(queries)))
    other = [rows[0]._replace(weights=None), *rows[1:]]
    with pytest.raises(ValueError, match="rows differ in the items' weights"):
        per_query(COMPLIANCE, other, as_run(rankings))
    with pytest.raises(ValueError, match="1 importances of"):
        replace(queries[0], importances=("vital",))
    with pytest.raises(ValueError, match="2 weights of"):
        replace(queries[0], weights=(1.0, 2.0))
