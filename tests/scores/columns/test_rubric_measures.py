"""Measures on columns of rubric ratings: labels, Cover, nCover and alpha_nDCG."""

from __future__ import annotations

import numpy as np
import pytest
from column_cases import (
    Labels,
    Scores,
    by_ir_measures,
    labels,
    qrels_of,
    rated_queries,
    rating_qrels,
    run_of,
    scores,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from converters.records import Qrel
from converters.run import Run
from trecexam.scores.columns import Evaluator, Judged
from trecexam.scores.labels import LabelRule, label_qrels, subtopic_qrels
from trecexam.scores.measures import measure
from trecexam.scores.ratings import QueryRatings

rules = st.sampled_from(("max", "count"))


def test_weighted_measures_need_importances() -> None:
    judged = Judged.from_ratings([QueryRatings("q", ("d",), 1, np.zeros((1, 1), np.int8))])
    with pytest.raises(ValueError, match="importance of items"):
        Evaluator([measure("Cover(weights=vital)@20")], judged)


ALPHAS = [
    measure(f"alpha_nDCG({parameters})@{k}")
    for parameters in (
        "rel=1",
        "rel=3",
        "alpha=0.3",
        "alpha=0.9,rel=2",
        "alpha=0.0",
        "alpha=1.0",
        "alpha=0.75",
    )
    for k in (1, 2, 5, 20)
]


@settings(deadline=None)
@given(queries=rated_queries(), by_run=scores, min_rating=st.integers(0, 5))
def test_alpha_ndcg_of_ratings_equals_pyndeval_bit_for_bit(
    queries: list[QueryRatings], by_run: Scores, min_rating: int
) -> None:
    judged, run = Judged.from_ratings(queries, min_rating=min_rating), run_of(by_run)
    values = Evaluator(ALPHAS, judged).values(run)
    for column, metric in enumerate(ALPHAS):
        rows: list[Qrel] = []
        for q in queries:
            rows += subtopic_qrels(q, min_rating) if metric["rel"] == 1 else rating_qrels(q)
        assert values[:, column].tolist() == by_ir_measures(metric, rows, run, judged.query_ids), metric


@settings(deadline=None)
@given(by_subtopic=st.dictionaries(st.sampled_from(("3", "1", "a", "0")), labels, max_size=4), by_run=scores)
def test_alpha_ndcg_of_diversity_qrels_equals_pyndeval_bit_for_bit(
    by_subtopic: dict[str, Labels], by_run: Scores
) -> None:
    rows = [row._replace(iteration=name) for name, of in by_subtopic.items() for row in qrels_of(of)]
    judged, run = Judged.from_qrels(rows), run_of(by_run)
    values = Evaluator(ALPHAS, judged).values(run)
    for column, metric in enumerate(ALPHAS):
        assert values[:, column].tolist() == by_ir_measures(metric, rows, run, judged.query_ids), metric


@pytest.mark.parametrize("cells", [1, 100_000, 1 << 22])
def test_alpha_ndcg_of_many_passages_equals_pyndeval(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if ideal rankings are made in several pieces, from queries of several sizes."""
    monkeypatch.setattr("trecexam.scores.columns.measures.alpha_ndcg._CELLS", cells)
    rng = np.random.default_rng(5)
    queries = []
    for n, n_docs in enumerate((40, 700, 3, 700, 650, 1, 300)):
        ratings = rng.choice([-1, 0, 1, 2, 3, 4, 5], (n_docs, 5 + 40 * (n == 1))).astype(np.int8)
        doc_ids = tuple(f"d{d:03}" for d in range(n_docs))
        queries.append(QueryRatings(f"q{n}", doc_ids, ratings.shape[1], ratings))
    run = run_of({q.query_id: {d: float(rng.random()) for d in q.doc_ids} for q in queries})
    rows = [row for q in queries for row in subtopic_qrels(q)]
    for metric in (measure("alpha_nDCG@20"), measure("alpha_nDCG(alpha=0.4)@10")):
        values = Evaluator([metric], Judged.from_ratings(queries)).values(run)
        assert values[:, 0].tolist() == by_ir_measures(metric, rows, run, [q.query_id for q in queries])


def test_measures_on_items_need_items() -> None:
    bare = Judged(("q",), np.array([0, 0]), Run.from_entries("r", []).doc_ids, np.empty(0, np.int32))
    for name in ("Cover@5", "nCover@5", "alpha_nDCG@5"):
        with pytest.raises(ValueError, match="no ratings of items"):
            Evaluator([measure(name)], bare)


NAMES = (
    "Cover(rel=4)@20", "nCover(rel=4)@5", "nDCG@10", "P(rel=4)@20", "AP(rel=4)", "RR(rel=4)@10", "Judged@20",
    "SetP(rel=4)", "SetR(rel=2)", "NumRet", "Rprec(rel=4)",
)  # fmt: skip


@settings(deadline=None)
@given(queries=rated_queries(), by_run=scores, rule=rules, min_rating=st.integers(1, 5))
def test_values_of_ratings_equal_ir_measures_on_the_rows_of_their_labels(
    queries: list[QueryRatings], by_run: Scores, rule: LabelRule, min_rating: int
) -> None:
    judged, run = Judged.from_ratings(queries, rule, min_rating), run_of(by_run)
    rows = list(label_qrels(queries, rule, min_rating))
    values = Evaluator([measure(name) for name in NAMES], judged).values(run)
    for column, name in enumerate(NAMES):
        assert values[:, column].tolist() == by_ir_measures(measure(name), rows, run, judged.query_ids), name
