"""Cover and nCover as ir_measures measures, against computations with sets."""

from __future__ import annotations

import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import ir_measures
import pytest
from column_cases import Scores, rated_queries, rating_qrels, scores
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import Measure, Qrel, nDCG
from ir_measures.util import CalcResults
from naive_cover import Frame, as_run, per_query

from trecexam.scores import Cover, nCover
from trecexam.scores.columns import Evaluator, Judged, provider
from trecexam.scores.labels import RubricQrel, label_qrels, subtopic_qrels
from trecexam.scores.ratings import QueryRatings


def test_a_skipped_query_is_zero(queries: list[QueryRatings], rankings: dict[str, list[str]]) -> None:
    del rankings["q2"]
    rankings["unknown"] = ["d00"]
    found = per_query(Cover(rel=1) @ 20, label_qrels(queries), as_run(rankings))
    assert found["q2"] == 0
    assert found.keys() == {q.query_id for q in queries}
    assert per_query(Cover @ 5, label_qrels(queries), {}) == dict.fromkeys(found, 0)


def test_rows_without_ratings_take_iterations_as_items() -> None:
    rows = [Qrel("q", "a", 5, "1"), Qrel("q", "b", 4, "2"), Qrel("q", "b", 1, "1"), Qrel("q", "c", 0, "x")]
    run = {"q": {"b": 2.0, "a": 1.0}}
    frame = Frame(rows, ("query_id", "doc_id", "relevance", "iteration"))
    for qrels in (rows, frame):
        assert per_query(Cover @ 1, qrels, run) == {"q": 1 / 3}
        assert per_query(Cover @ 2, qrels, run) == {"q": 2 / 3}
        assert per_query(nCover @ 1, qrels, run) == {"q": 1 / 2}
        assert per_query(Cover(rel=5) @ 2, qrels, run) == {"q": 1 / 3}
    run_frame = Frame([("q", "a", 1.0)], ("query_id", "doc_id", "score"))
    assert per_query(Cover @ 1, frame, run_frame) == {"q": 1 / 3}


def test_cover_equals_hand_computed_values() -> None:
    rows = [RubricQrel("q", "a", 5, ratings=(5, -1, 0)), RubricQrel("q", "b", 4, ratings=(4, 4, -1))]
    run = as_run({"q": ["none", "a", "b"]})
    assert [per_query(each, rows, run)["q"] for each in (Cover @ 1, nCover @ 1)] == [0, 0]
    assert [per_query(each, rows, run)["q"] for each in (Cover @ 2, nCover @ 2)] == [1 / 3, 1 / 2]
    assert [per_query(each, rows, run)["q"] for each in (Cover, nCover)] == [2 / 3, 1]
    assert [per_query(each, rows, {})["q"] for each in (Cover, nCover)] == [0, 0]
    assert per_query(Cover, [RubricQrel("q", "a", 0, ratings=())], {"q": {"a": 1.0}}) == {"q": 0}
    assert per_query(nCover, [RubricQrel("q", "a", 0, ratings=(3,))], {"q": {"a": 1.0}}) == {"q": 0}


def test_importing_the_measures_loads_neither_scipy_nor_pandas() -> None:
    script = (
        "import sys, ir_measures\n"
        "from trecexam.scores.measures import measure\n"
        "assert str(measure('Cover@7')) == 'Cover(rel=4)@7'\n"
        "assert str(ir_measures.parse_measure('nCover@5')) == 'nCover(rel=4)@5'\n"
        "assert not {'scipy', 'torch', 'transformers', 'pandas'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


# Qrels in every form that ir_measures accepts: exact with items, rejected without.


RUN = {"q1": {"b": 2.0, "a": 1.0}, "q2": {"a": 1.0}}
LABELS = [Qrel("q1", "a", 5), Qrel("q1", "b", 4), Qrel("q2", "a", 0)]

#: Each way in which ir_measures evaluates: a function of measure, qrels and run.
Way = Callable[[Measure, Any, Any], Any]
WAYS: dict[str, Way] = {
    "calc_aggregate": lambda m, qrels, run: ir_measures.calc_aggregate([m], qrels, run),
    "beside another measure": lambda m, qrels, run: ir_measures.calc_aggregate([nDCG @ 10, m], qrels, run),
    "calc": lambda m, qrels, run: ir_measures.calc([m], qrels, run),
    "iter_calc": lambda m, qrels, run: list(ir_measures.iter_calc([m], qrels, run)),
    "evaluator": lambda m, qrels, run: ir_measures.evaluator([m], qrels).calc_aggregate(run),
    "the measure itself": lambda m, qrels, run: m.calc_aggregate(qrels, run),
    "the provider": lambda m, qrels, run: ir_measures.providers.registry["trecexam"].calc([m], qrels, run),
    "the columns' provider": lambda m, qrels, run: provider.calc_aggregate([m], qrels, run),
}
NoIteration = namedtuple("NoIteration", ("query_id", "doc_id", "relevance"))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("measure", [Cover(rel=4) @ 20, nCover(rel=1), Cover @ 1])
def test_labels_without_items_are_rejected_by_every_api(way: Way, measure: Measure) -> None:
    forms: list[Any] = [
        LABELS,
        iter(LABELS),
        (row for row in LABELS),
        {"q1": {"a": 5, "b": 4}, "q2": {"a": 0}},
        [NoIteration(*row[:3]) for row in LABELS],
        [row._replace(iteration="Q0") for row in LABELS],
    ]
    for qrels in forms:
        with pytest.raises(ValueError, match=r"query 'q1'.*track\.qrels\(\).*rubric\.subtopics\.qrels"):
            way(measure, qrels, RUN)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    ("measure", "instead"),
    [
        (Cover(rel=4) @ 20, r"Cover\(rel=1\)@20"),
        (nCover(rel=2), r"nCover\(rel=1\)"),
        (Cover(rel=2, partial=1) @ 5, r"Cover\(rel=1\)@5"),
    ],
)
def test_rows_of_0_and_1_are_not_searched_for_ratings(way: Way, measure: Measure, instead: str) -> None:
    rows = [Qrel("q1", "a", 1, "1"), Qrel("q1", "b", 0, "2"), Qrel("q2", "a", 0, "1")]
    for qrels in (rows, iter(rows)):
        with pytest.raises(ValueError, match=rf"0 or 1.*{instead}.*--min-rating.*track\.qrels\(\)"):
            way(measure, qrels, RUN)
    assert value_of(way(Cover(rel=1) @ 20, rows, RUN)) == 0.25


def value_of(result: Any) -> float:
    if isinstance(result, CalcResults):
        result = result.aggregated
    if isinstance(result, dict):
        result = next(value for measure, value in result.items() if measure.NAME == "Cover")
    return result if isinstance(result, float) else sum(m.value for m in result) / len(result)


def test_columns_are_as_strict_as_the_provider() -> None:
    with pytest.raises(ValueError, match="query 'q1'"):
        Evaluator([Cover @ 5], Judged.from_qrels(LABELS))
    judged = Judged.from_qrels([Qrel("q1", "a", 1, "1"), Qrel("q2", "a", 1)])
    with pytest.raises(ValueError, match="query 'q2'"):
        Evaluator([Cover @ 5], judged)
    Evaluator([nDCG @ 5], judged)
    zeros = Judged.from_qrels([Qrel("q1", "a", 0, "1")])
    with pytest.raises(ValueError, match="0 or 1"):
        Evaluator([Cover(rel=2)], zeros)
    assert Evaluator([Cover(rel=1)], zeros).names == ("Cover(rel=1)",)


def test_ids_that_are_numbers_on_one_side_only_are_rejected() -> None:
    rows = [Qrel("1", "7", 1, "1")]
    for run in ({1: {"7": 1.0}}, {"1": {7: 1.0}}):
        with pytest.raises(ValueError, match="as text"):
            ir_measures.calc_aggregate([Cover(rel=1) @ 5], rows, run)
    numbers = [Qrel(1, 7, 1, "1")]  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="as text"):
        ir_measures.calc_aggregate([Cover(rel=1) @ 5], numbers, {"1": {"7": 1.0}})
    assert ir_measures.calc_aggregate([Cover(rel=1) @ 5], numbers, {1: {7: 1.0}}) == {Cover(rel=1) @ 5: 1}


@settings(deadline=None)
@given(rated_queries(), scores, st.integers(1, 5), st.sampled_from((None, 1, 2, 20)))
def test_rows_per_item_give_the_same_as_the_ratings(
    queries: list[QueryRatings], by_run: Scores, min_rating: int, cutoff: int | None
) -> None:
    queries = [q for q in queries if q.n_items]

    def covers(rel: int, rows: list[Any]) -> dict[tuple[str, str | None], float]:
        both = [
            measure if cutoff is None else measure @ cutoff for measure in (Cover(rel=rel), nCover(rel=rel))
        ]
        return {(m.query_id, m.measure.NAME): m.value for m in ir_measures.iter_calc(both, rows, by_run)}

    expected = covers(min_rating, list(label_qrels(queries)))
    assert covers(1, [row for q in queries for row in subtopic_qrels(q, min_rating)]) == expected
    ratings = [row for q in queries for row in rating_qrels(q)]
    if max((row.relevance for row in ratings), default=0) > 1:
        assert covers(min_rating, ratings) == expected


def test_frames_with_numeric_iterations_identify_items() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        [("q1", "a", 1, 1), ("q1", "b", 0, 2), ("q2", "a", 0, 1)],
        columns=["query_id", "doc_id", "relevance", "iteration"],
    )
    for way in WAYS.values():
        assert value_of(way(Cover(rel=1) @ 20, frame, RUN)) == 0.25
