"""Expected labels and ECover, against sums over all outcomes of the ratings."""

from __future__ import annotations

import itertools
from dataclasses import replace

import ir_measures
import numpy as np
import pytest
from column_cases import Scores as ByRun
from column_cases import by_ir_measures, rated_queries, run_of, scores, untied
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import Qrel, nDCG

from trecexam.scores import Cover, ECover
from trecexam.scores.columns import Evaluator, Judged, provider
from trecexam.scores.expected import certain, gains, with_probabilities
from trecexam.scores.labels import label_qrels, labels
from trecexam.scores.ratings import QueryRatings


def drawn(seed: int, n_docs: int = 3, n_items: int = 2) -> tuple[QueryRatings, np.ndarray]:
    """A query whose cells are rated 0, 2 or 4 with random probabilities: all outcomes can be listed."""
    rng = np.random.default_rng(seed)
    stated = np.zeros((n_docs, n_items, 6))
    stated[..., (0, 2, 4)] = rng.dirichlet((1, 1, 1), (n_docs, n_items))
    ratings = np.array((0, 2, 4), np.int8)[rng.integers(0, 3, (n_docs, n_items))]
    q = QueryRatings("q1", tuple(f"d{n}" for n in range(n_docs)), n_items, ratings)
    return q, stated


def outcomes(stated: np.ndarray) -> list[tuple[np.ndarray, float]]:
    """Every possible matrix of ratings, and its probability."""
    shape, cells = stated.shape[:2], stated.reshape(-1, 6)
    listed = []
    for ratings in itertools.product(*(np.flatnonzero(cell).tolist() for cell in cells)):
        chance = float(np.prod([cell[rating] for cell, rating in zip(cells, ratings, strict=True)]))
        listed.append((np.array(ratings, np.int8).reshape(shape), chance))
    return listed


@pytest.mark.parametrize("min_answers", [1, 2, 3])
def test_a_gain_is_the_mean_label_over_all_outcomes_of_the_ratings(min_answers: int) -> None:
    q, stated = drawn(min_answers, n_docs=2, n_items=3)
    expected = np.zeros(2)
    for ratings, chance in outcomes(stated):
        label = labels(QueryRatings("q1", q.doc_ids, 3, ratings), "max", min_answers=min_answers)
        expected += chance * np.array(list(label.values()))
    assert gains(with_probabilities(q, stated), min_answers) == pytest.approx(expected)


@pytest.mark.parametrize("measure", [ECover(rel=2) @ 2, ECover(rel=4), ECover(rel=4, partial=2) @ 2])
@pytest.mark.parametrize("weights", ["equal", "importance", "vital"])
def test_ecover_is_the_mean_cover_over_all_outcomes_of_the_ratings(
    measure: ir_measures.Measure, weights: str
) -> None:
    measure = type(measure)(**{**measure.params, "weights": weights})
    q, stated = drawn(7)
    q = QueryRatings("q1", q.doc_ids, 2, q.ratings, importances=("vital", "okay"))
    scores = {"d2": 3.0, "other": 2.0, "d0": 1.0, "d1": 0.5}
    ranked = run_of({"q1": scores})
    # Each outcome is a query of its own.
    chances = {f"outcome {n}": outcome for n, outcome in enumerate(outcomes(stated))}
    certain_rows = label_qrels(
        [
            QueryRatings(name, q.doc_ids, 2, ratings, importances=q.importances)
            for name, (ratings, _) in chances.items()
        ]
    )
    runs = run_of(dict.fromkeys(chances, scores))
    values = ir_measures.iter_calc([Cover(**measure.params)], list(certain_rows), untied(runs))
    expected = sum(chances[metric.query_id][1] * metric.value for metric in values)
    rows = list(label_qrels([with_probabilities(q, stated)]))
    assert ir_measures.calc_aggregate([measure], rows, untied(ranked))[measure] == pytest.approx(expected)
    assert provider.calc_aggregate([measure], rows, ranked)[measure] == pytest.approx(expected)


def weighted(q: QueryRatings) -> QueryRatings:
    """With weights of the bank, every third one negative."""
    return replace(q, weights=tuple((0.7, 2.0, -1.3)[item % 3] for item in range(q.n_items)))


measures = st.sampled_from(
    [{"rel": 4, "cutoff": 3}, {"rel": 1}, {"rel": 5, "partial": 3, "cutoff": 5}, {"rel": 6, "cutoff": 2}]
)


@settings(deadline=None)
@given(
    rated_queries(weighed=True), scores, measures, st.sampled_from(["equal", "vital", "importance", "item"])
)
def test_with_certain_ratings_ecover_equals_cover_and_gains_equal_labels(
    queries: list[QueryRatings], by_run: ByRun, params: dict[str, int], weights: str
) -> None:
    known = [with_probabilities(weighted(q), np.full((*q.ratings.shape, 6), np.nan)) for q in queries]
    both = [kind(weights=weights, **params) for kind in (Cover, ECover)]
    values = Evaluator(both, Judged.from_ratings(known)).values(run_of(by_run))
    assert (values[:, 0] == values[:, 1]).all()
    for q in known:
        of_rated = dict(zip(q.doc_ids, gains(q).tolist(), strict=True))
        assert {doc: gain for doc, gain in of_rated.items() if gain == gain} == labels(q)
    ranked = [
        Evaluator([nDCG @ 3, nDCG], Judged.from_ratings(known, rule)).values(run_of(by_run))
        for rule in ("max", "expected")
    ]
    assert (ranked[0] == ranked[1]).all()


@settings(deadline=None)
@given(rated_queries(weighed=True), scores, measures, st.integers(0, 1000))
def test_ecover_is_bit_identical_on_ratings_and_on_rows_that_carry_them(
    queries: list[QueryRatings], by_run: ByRun, params: dict[str, int], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    known = [with_probabilities(weighted(q), rng.dirichlet([0.5] * 6, q.ratings.shape)) for q in queries]
    run, judged, rows = run_of(by_run), Judged.from_ratings(known), list(label_qrels(known))
    for name in ("equal", "importance", "item"):
        one = ECover(weights=name, **params)
        values = Evaluator([one], judged).values(run)[:, 0].tolist()
        assert values == by_ir_measures(one, rows, run, judged.query_ids)


def test_ndcg_of_expected_labels_uses_fractional_gains() -> None:
    q, stated = drawn(3, n_docs=4)
    judged = Judged.from_ratings([with_probabilities(q, stated)], "expected")
    gain = dict(zip(q.doc_ids, gains(with_probabilities(q, stated)), strict=True))
    run = run_of({"q1": {"d3": 4.0, "none": 3.0, "d0": 2.0, "d1": 1.0}})
    discounted = [gain.get(doc, 0.0) / np.log2(rank + 2) for rank, doc in enumerate(["d3", "none", "d0"])]
    ideal = [value / np.log2(rank + 2) for rank, value in enumerate(sorted(gain.values(), reverse=True)[:3])]
    values = Evaluator([nDCG @ 3, nDCG(judged_only=True) @ 2], judged).values(run)[0]
    assert values[0] == pytest.approx(sum(discounted) / sum(ideal))
    condensed = gain["d3"] + gain["d0"] / np.log2(3)
    assert values[1] == pytest.approx(condensed / sum(ideal[:2]))
    mapped = Evaluator([nDCG(gains={4: 1, 2: 0}) @ 3], judged).values(run)
    whole = Judged.from_ratings([q], "max")
    assert mapped == Evaluator([nDCG(gains={4: 1, 2: 0}) @ 3], whole).values(run)


def test_a_passage_rated_by_a_person_has_that_gain_and_one_without_rating_has_none() -> None:
    ratings = np.array([[1, -1], [-1, -1], [-1, -1]], np.int8)
    q = QueryRatings("q1", ("a", "b", "c"), 2, ratings, human={"b": 3})
    stated = np.full((3, 2, 6), 1 / 6)
    made = with_probabilities(q, stated)
    assert gains(made).tolist()[:2] == pytest.approx([2.5, 3.0])
    assert np.isnan(gains(made)[2])
    assert made.at_least is not None
    assert (made.at_least[ratings < 0] == 0).all()


def test_probabilities_are_normalised_and_invalid_ones_leave_the_rating_certain() -> None:
    q = QueryRatings("q1", ("a",), 3, np.array([[4, 4, 4]], np.int8))
    stated = np.zeros((1, 3, 6))
    stated[0, 0] = (0, 0, 0, 2, 6, 0)
    stated[0, 2] = np.nan
    made = with_probabilities(q, stated)
    assert made.at_least is not None
    assert made.at_least[0].tolist() == [[1, 1, 1, 0.75, 0], *certain(np.array([4, 4])).tolist()]


def test_ecover_rejects_qrels_without_probabilities() -> None:
    q, stated = drawn(1)
    run = {"q1": {"d0": 1.0}}
    plain = list(label_qrels([q]))
    for rows in (plain, [*label_qrels([with_probabilities(q, stated)])][:1] + plain[1:]):
        for calc in (ir_measures.calc_aggregate, provider.calc_aggregate):
            with pytest.raises(ValueError, match=r"ECover\(rel=4\)@5 needs the probability of each rating"):
                calc([ECover @ 5], rows, run)
    with pytest.raises(ValueError, match="name no item"):
        ir_measures.calc_aggregate([ECover @ 5], [Qrel("q1", "d0", 1)], run)


def test_gains_without_answers_and_ratings_of_another_shape_are_rejected() -> None:
    q, stated = drawn(2)
    with pytest.raises(ValueError, match="min_answers = 0"):
        gains(q, 0)
    with pytest.raises(ValueError, match=r"shape \(3, 2, 5\) needed"):
        QueryRatings("q1", q.doc_ids, 2, q.ratings, at_least=stated)
