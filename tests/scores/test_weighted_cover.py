"""Cover with weights, also negative ones, and half credit: against naive loops and nuggetizer's formulas."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from fractions import Fraction

import ir_measures
import numpy as np
import pytest
from column_cases import evaluated, rating_qrels
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import Qrel
from naive_cover import WEIGHT, Frame, as_run, naive_cover, per_query

from trecexam.scores import Cover, nCover
from trecexam.scores.columns import Evaluator, Judged
from trecexam.scores.labels import RubricQrel, label_qrels
from trecexam.scores.measures import measure
from trecexam.scores.ratings import QueryRatings


def weighed(queries: list[QueryRatings], seed: int = 7) -> list[QueryRatings]:
    """With importances, and so few passages that they do not reach all; the last query has no vital item."""
    rng = random.Random(seed)
    kinds = [[rng.choice(("vital", "okay", "")) for _ in range(q.n_items)] for q in queries]
    kinds[0][:3] = ["vital", "okay", ""]
    kinds[-1] = ["okay"] * queries[-1].n_items
    return [
        replace(q, doc_ids=q.doc_ids[:4], ratings=q.ratings[:4], importances=tuple(kind))
        for q, kind in zip(queries, kinds, strict=True)
    ]


@pytest.mark.parametrize("weights", list(WEIGHT))
@pytest.mark.parametrize(("rel", "partial"), [(4, None), (4, 2), (5, 3), (5, 4), (2, 1)])
def test_weighted_cover_equals_a_naive_loop(
    queries: list[QueryRatings],
    rankings: dict[str, list[str]],
    weights: str,
    rel: int,
    partial: int | None,
) -> None:
    queries = weighed(queries)
    run, qrels = as_run(rankings), list(label_qrels(queries))
    judged = Judged.from_ratings(queries)
    for k, base in itertools.product((1, 3, 20, None), (Cover, nCover)):
        one = base(rel=rel, partial=partial, weights=weights)
        one = one if k is None else one @ k
        place = 0 if base.NAME == "Cover" else 1
        expected = {
            q.query_id: naive_cover(q, rankings[q.query_id], rel, k, partial, weights)[place] for q in queries
        }
        assert per_query(one, qrels, run) == expected
        assert ir_measures.calc_aggregate([one], iter(qrels), run)[one] == pytest.approx(
            sum(expected.values()) / len(expected)
        )
        found = evaluated([one], judged, rankings)
        assert {query_id: values[str(one)] for query_id, values in found.items()} == expected


def test_a_query_without_vital_items_scores_zero_and_counts(
    queries: list[QueryRatings], rankings: dict[str, list[str]]
) -> None:
    queries = weighed(queries)
    last = queries[-1].query_id
    for one in (Cover(rel=1, weights="vital"), nCover(rel=1, weights="vital")):
        found = per_query(one, label_qrels(queries), as_run(rankings))
        assert found.keys() == {q.query_id for q in queries}
        assert found[last] == 0 < min(value for query_id, value in found.items() if query_id != last)
    assert per_query(Cover(rel=1, weights="importance"), label_qrels(queries), as_run(rankings))[last] > 0


def nuggetizer_scores(nuggets: list[dict[str, str]]) -> dict[str, float]:
    """The scores of one answer by the published formulas: shares of nuggets, 1/2 for partial support.

    W weighs okay nuggets by 1/2 (arXiv:2411.09607, Section 4); nuggetizer's code has no W.
    """

    def share(of: list[dict[str, str]], credit: dict[str, float]) -> float:
        return sum(credit.get(n["assignment"], 0.0) for n in of) / len(of) if of else 0.0

    vital = [n for n in nuggets if n["importance"] == "vital"]
    okay = [n for n in nuggets if n["importance"] == "okay"]

    def weighted(credit: dict[str, float]) -> float:
        shares = share(vital, credit) * len(vital) + 0.5 * share(okay, credit) * len(okay)
        return shares / (len(vital) + 0.5 * len(okay))

    strict = {"support": 1.0}
    lenient = {"support": 1.0, "partial_support": 0.5}
    return {
        "strict_vital": share(vital, strict),
        "strict_all": share(nuggets, strict),
        "vital": share(vital, lenient),
        "all": share(nuggets, lenient),
        "strict_weighted": weighted(strict),
        "weighted": weighted(lenient),
    }


OURS = {
    "strict_vital": Cover(rel=5, weights="vital"),
    "strict_all": Cover(rel=5),
    "vital": Cover(rel=5, partial=3, weights="vital"),
    "all": Cover(rel=5, partial=3),
    "strict_weighted": Cover(rel=5, weights="importance"),
    "weighted": Cover(rel=5, partial=3, weights="importance"),
}


@pytest.mark.parametrize("seed", range(20))
def test_cover_of_one_answer_equals_the_nuggetizer_score(seed: int) -> None:
    rng = random.Random(seed)
    rating = {"support": 5, "partial_support": 3, "not_support": 0, "failed": -1}
    nuggets = [
        {"importance": rng.choice(("vital", "okay")), "assignment": rng.choice(list(rating))}
        for _ in range(rng.randint(1, 12))
    ]
    row = RubricQrel(
        "q",
        "answer",
        0,
        ratings=tuple(rating[n["assignment"]] for n in nuggets),
        importances=tuple(n["importance"] for n in nuggets),
    )
    found = ir_measures.calc_aggregate(OURS.values(), [row], {"q": {"answer": 1.0}})
    ours = {name: found[one] for name, one in OURS.items()}
    assert ours == pytest.approx(nuggetizer_scores(nuggets), abs=1e-12, rel=0)


def test_the_weighted_score_equals_the_formula_of_the_paper() -> None:
    # Two vital nuggets, one supported; two okay ones, one partly: (1 + 0.5 * 0.5) / (2 + 0.5 * 2).
    row = RubricQrel("q", "a", 5, ratings=(5, 0, 3, 0), importances=("vital", "vital", "okay", ""))
    one = Cover(rel=5, partial=3, weights="importance")
    assert per_query(one, [row], {"q": {"a": 1.0}}) == {"q": 1.25 / 3}
    strict = Cover(rel=5, weights="importance")
    assert per_query(strict, [row], {"q": {"a": 1.0}}) == {"q": 1 / 3}
    assert (measure("weighted_score"), measure("strict_weighted_score")) == (one, strict)


@pytest.mark.parametrize(
    "params",
    [{"partial": 4}, {"partial": 2.0}, {"partial": True}, {"weights": None}, {"weights": ["vital"]}],
)
def test_invalid_parameters_are_rejected(params: dict[str, object]) -> None:
    with pytest.raises(AssertionError):
        Cover(**params).validate_params()
    with pytest.raises(ValueError, match=r"^Cover: .*; it takes .*'equal' or 'vital' or 'importance'"):
        measure(Cover(**params))


def test_weights_of_the_bank_are_of_cover_alone() -> None:
    assert measure("strict_compliance_score") == Cover(rel=5, weights="item")
    with pytest.raises(ValueError, match="weights='item' are of Cover alone"):
        measure("nCover(rel=4,weights=item)@20")
    with pytest.raises(AssertionError):
        nCover(weights="item").validate_params()


def test_qrels_without_importance_are_rejected_with_the_reason(queries: list[QueryRatings]) -> None:
    columns = ("query_id", "doc_id", "relevance", "iteration", "importance")
    frame = Frame([("q", "a", 5, "1", "vital")], columns)
    none = list(label_qrels(queries))
    some = [*label_qrels(weighed(queries)), RubricQrel("q9", "a", 5, ratings=(5,))]
    plain = [row for q in weighed(queries) for row in rating_qrels(q)]
    for qrels in (frame, none, some, plain, {"q": {"a": 5}}, [Qrel("q", "a", 5)]):
        for one in (Cover(weights="vital") @ 5, nCover(weights="importance")):
            with pytest.raises(ValueError, match="needs the importance of items, and these qrels carry none"):
                ir_measures.calc([one], qrels, {"q": {"a": 1.0}})
    # Half credit and equal weights need no importance.
    found = ir_measures.calc_aggregate([Cover(partial=2, weights="equal")], frame, {"q": {"a": 1.0}})
    assert list(found.values()) == [1]


# Weights of the bank, some of them negative.


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
