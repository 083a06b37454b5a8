"""Scores of ranked lists by their documents' labels in 0..1, as in eRAG.

Salemi and Zamani, "Evaluating Retrieval Quality in Retrieval-Augmented Generation", SIGIR 2024, section 3.
If all labels are 0 or 1, `ir_measures` computes all measures. Else, with l(i) the label at rank i:

    P@k    = (l(1) + ... + l(k)) / k
    Success@k = max(l(1), ..., l(k))                      (eRAG: Hit)
    nDCG@k = sum of l(i) / log2(i + 1), over the same sum of the query's labels in falling order

Other measures are undefined. P and Success are eRAG's; on labels of 0 and 1 all three are the usual measures.

A document without a label counts as 0. Lists shorter than k are padded with such documents: P@k divides by k.
All measures of an empty list are 0. The relevant documents in R, AP and nDCG are those with a label, from any
run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from ir_measures import Measure

from converters.records import Qrel
from trecexam.errors import TrecexamError
from trecexam.scores.columns.evaluator import Evaluator
from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.ranked import run_of
from trecexam.scores.measures import COVER, DIVERSITY, measure
from trecexam.scores.values import MeasureValues

#: run -> query_id -> doc_ids down to the evaluated depth, best first.
Ranked = Mapping[str, Mapping[str, Sequence[str]]]
#: query_id -> doc_id -> label, 0..1.
Labels = Mapping[str, Mapping[str, float]]
#: Measures that are defined for fractional labels.
FRACTIONAL = ("P", "Success", "nDCG")
#: The measures computed by default.
DEFAULT = ("P@10", "nDCG@10", "Success@10", "R@10", "AP@10", "RR@10")


def measures_of(names: Iterable[str]) -> list[Measure]:
    """Return the measures with these names in ir_measures' notation, without duplicates."""
    measures = []
    for name in names:
        try:
            parsed = measure(name)
        except ValueError as error:
            raise TrecexamError(str(error)) from None
        if parsed.NAME in COVER or parsed.NAME in DIVERSITY:
            raise TrecexamError(f"{parsed} needs a test bank's items, and a document's label is one number")
        measures.append(parsed)
    return list(dict.fromkeys(measures))


def is_binary(labels: Labels) -> bool:
    """Return True if all labels are 0 or 1, or there are no labels."""
    return all(label in (0, 1) for by_document in labels.values() for label in by_document.values())


def allowed(measures: Sequence[Measure], labels: Labels) -> tuple[list[Measure], tuple[str, ...]]:
    """Return the measures defined for these labels, and reasons why other measures are not."""
    binary = is_binary(labels)
    able = [m for m in measures if binary or (m.NAME in FRACTIONAL and m.params.keys() <= {"cutoff"})]
    why = "needs labels of 0 and 1, but some are fractions; use P, Success and nDCG"
    return able, tuple(f"{each} {why}" for each in measures if each not in able)


def measure_values(
    labels: Labels, measures: Sequence[Measure], query_ids: Sequence[str], ranked: Ranked
) -> MeasureValues:
    """Return the runs' values of allowed measures for exactly these queries.

    A query that a run skips has 0.
    """
    runs, queries = tuple(ranked), tuple(query_ids)
    if not is_binary(labels):
        array = np.empty((len(runs), len(queries), len(measures)))
        for (run, query, column), _ in np.ndenumerate(array):
            ranking, of_query = ranked[runs[run]].get(queries[query], ()), labels.get(queries[query], {})
            array[run, query, column] = _fractional(measures[column], ranking, of_query)
        return MeasureValues(runs, queries, tuple(map(str, measures)), array)
    rows = (
        Qrel(query_id, doc_id, int(label))
        for query_id in query_ids
        for doc_id, label in labels.get(query_id, {}).items()
    )
    evaluator = Evaluator(measures, Judged.from_qrels(rows, query_ids))
    array = np.array([evaluator.values(run_of(lists)) for lists in ranked.values()])
    return MeasureValues(runs, queries, evaluator.names, array).without_failed(evaluator.failures)


def _fractional(measure: Measure, ranking: Sequence[str], labels: Mapping[str, float]) -> float:
    cutoff: int | None = measure.params.get("cutoff")
    gains = [float(labels.get(doc_id, 0)) for doc_id in ranking[:cutoff]]
    if measure.NAME == "Success":
        return max(gains, default=0.0)
    if measure.NAME == "P":
        return math.fsum(gains) / (cutoff or 1)
    ideal = _dcg(sorted(labels.values(), reverse=True)[:cutoff])
    return _dcg(gains) / ideal if ideal else 0.0


def _dcg(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
