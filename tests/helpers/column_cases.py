"""Random judgments and runs for measures on columns, and their ir_measures values."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ir_measures
import numpy as np
from hypothesis import strategies as st
from ir_measures import Measure

from converters.records import Qrel
from converters.run import Run
from trecexam.scores import columns
from trecexam.scores.columns import Evaluator, Judged
from trecexam.scores.labels import item_qrels, naming
from trecexam.scores.measures import measure
from trecexam.scores.ratings import QueryRatings

#: query_id -> doc_id -> label
Labels = Mapping[str, Mapping[str, int]]
#: query_id -> doc_id -> score
Scores = Mapping[str, Mapping[str, float]]

QUERY_IDS = ("q1", "q2", "10", "9", "é")
#: One and several bytes long, and one a prefix of another, since ties are ordered by bytes.
DOC_IDS = (*(f"d{n}" for n in range(26)), "d", "é", "日本", "\U0001f600", "~")

labels = st.dictionaries(
    st.sampled_from(QUERY_IDS),
    st.dictionaries(st.sampled_from(DOC_IDS), st.integers(-2, 5), min_size=1, max_size=20),
    max_size=4,
)
#: Few scores, so that there are ties, and two that are equal as 32-bit floats.
scores = st.dictionaries(
    st.sampled_from(QUERY_IDS),
    st.dictionaries(
        st.sampled_from(DOC_IDS), st.sampled_from((0.0, 1.0, 1.0000000001, 2.5, -3.0)), min_size=1
    ),
    max_size=4,
)
importances = st.sampled_from(("vital", "okay", ""))


@st.composite
def rated_queries(draw: st.DrawFn, *, weighed: bool = False) -> list[QueryRatings]:
    """Up to four queries with ratings of up to six items, some without any, some passages rated by people."""
    queries = []
    for query_id in draw(st.lists(st.sampled_from(QUERY_IDS), unique=True, max_size=4)):
        doc_ids = tuple(sorted(draw(st.lists(st.sampled_from(DOC_IDS), unique=True, max_size=14))))
        n_items = draw(st.integers(0, 6))
        rng = random.Random(draw(st.integers(0, 10_000)))
        rows = [
            [-1] * n_items if rng.random() < 0.2 else rng.choices((-1, 0, 1, 2, 3, 4, 5), k=n_items)
            for _ in doc_ids
        ]
        matrix = np.array(rows, np.int8).reshape(len(doc_ids), n_items)
        human = {doc_id: rng.randint(0, 5) for doc_id in doc_ids if rng.random() < 0.15}
        kinds = tuple(rng.choices(("vital", "okay", ""), k=n_items)) if weighed else None
        queries.append(QueryRatings(query_id, doc_ids, n_items, matrix, human, kinds))
    return queries


def evaluated(
    measures: Iterable[str | Measure], judged: Judged, rankings: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, float]]:
    """The values of rankings: query_id -> measure -> value."""
    evaluator = Evaluator(map(measure, measures), judged)
    values = evaluator.values(columns.run_of(rankings)).tolist()
    return {
        query_id: dict(zip(evaluator.names, row, strict=True))
        for query_id, row in zip(judged.query_ids, values, strict=True)
    }


def run_of(by_query: Scores, name: str = "run") -> Run:
    """The run with these scores."""
    return Run.from_entries(
        name, [(query_id, doc_id, score) for query_id, of in by_query.items() for doc_id, score in of.items()]
    )


def rating_qrels(q: QueryRatings) -> list[Qrel]:
    """Every rating as a row, passage by passage, from the lowest: the iteration is the item, from 1."""
    rows = item_qrels(q.query_id, q.doc_ids, naming(q.ratings, q.rated))
    return sorted(rows, key=lambda row: (row.doc_id, row.relevance))


def untied(run: Run) -> dict[str, dict[str, float]]:
    """The same order with the scores n, n-1, ..., 1, in which no provider finds a tie."""
    return {
        query_id: {doc_id: float(score) for score, doc_id in enumerate(reversed(run.ranking(query_id)), 1)}
        for query_id in run.query_ids
    }


def qrels_of(by_query: Labels) -> list[Qrel]:
    """The labels as qrels rows."""
    return [
        Qrel(query_id, doc_id, label) for query_id, of in by_query.items() for doc_id, label in of.items()
    ]


def for_trec_eval(by_query: Labels) -> dict[str, dict[str, int]]:
    """The same labels as trec_eval distinguishes them, plus a passage that prevents a crash.

    pytrec_eval crashes on a query whose best label is below -1. With nDCG it may hang on a query whose best
    label is -1, because it uses the number of levels of the previous query. One more irrelevant passage that
    no run retrieves prevents both and changes no value.
    """
    return {
        query_id: {"not retrieved": 0} | {doc_id: max(label, -1) for doc_id, label in of.items()}
        for query_id, of in by_query.items()
    }


def without_not_judged(by_query: Labels) -> dict[str, dict[str, int]]:
    """Return the labels without -1, which ir_measures' Judged takes for a judgment."""
    return {
        query_id: {doc_id: label for doc_id, label in of.items() if label != -1}
        for query_id, of in by_query.items()
    }


def in_32_bits(by_query: Scores) -> dict[str, dict[str, float]]:
    """Return the scores as pytrec_eval compares them."""
    return {
        query_id: {doc_id: float(np.float32(score)) for doc_id, score in of.items()}
        for query_id, of in by_query.items()
    }


def by_ir_measures(measure: Measure, rows: Sequence[Any], run: Run, query_ids: Iterable[str]) -> list[float]:
    """The values of ir_measures' own providers per query; 0 if they give none or no finite number."""
    values = dict.fromkeys(query_ids, 0.0)
    if rows:
        for metric in ir_measures.evaluator([measure], rows).iter_calc(untied(run)):
            if metric.query_id in values and math.isfinite(metric.value):
                values[metric.query_id] = float(metric.value)
    return list(values.values())


def judged_of(by_query: Labels) -> Judged:
    """The judgments with exactly these labels."""
    return Judged.from_qrels(qrels_of(by_query))
