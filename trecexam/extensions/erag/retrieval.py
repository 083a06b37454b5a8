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
from trecexam.scores.support import SUPPORT
from trecexam.scores.values import MeasureValues

#: run -> query_id -> doc_ids down to the evaluated depth, best first.
Ranked = Mapping[str, Mapping[str, Sequence[str]]]
#: (query_id, doc_id).
Pair = tuple[str, str]
#: The label of each labelled document, 0..1.
Labels = Mapping[Pair, float]
#: Measures that are defined for fractional labels.
FRACTIONAL = ("P", "Success", "nDCG")
_OF_ITEMS = {*COVER, *DIVERSITY, *SUPPORT}
#: The measures computed by default.
DEFAULT = ("P@10", "nDCG@10", "Success@10", "R@10", "AP@10", "RR@10")


def measures_of(names: Iterable[str]) -> list[Measure]:
    """Return the measures with these names in ir_measures' notation, without duplicates."""
    measures = list(dict.fromkeys(map(measure, names)))
    if wrong := next((each for each in measures if each.NAME in _OF_ITEMS), None):
        raise TrecexamError(f"{wrong} needs a test bank's items, and a document's label is one number")
    return measures


def is_binary(labels: Labels) -> bool:
    """Return True if all labels are 0 or 1, or there are no labels."""
    return all(label in (0, 1) for label in labels.values())


def allowed(measures: Sequence[Measure], labels: Labels) -> list[Measure]:
    """Return the measures that are defined for these labels."""
    binary = is_binary(labels)
    return [m for m in measures if binary or (m.NAME in FRACTIONAL and m.params.keys() <= {"cutoff"})]


def measure_values(
    labels: Labels, measures: Sequence[Measure], query_ids: Sequence[str], ranked: Ranked
) -> MeasureValues:
    """Return the runs' values of allowed measures for exactly these queries.

    A query that a run skips has 0.
    """
    runs, queries = tuple(ranked), tuple(query_ids)
    if is_binary(labels):
        rows = (Qrel(*pair, int(label)) for pair, label in labels.items())
        evaluator = Evaluator(measures, Judged.from_qrels(rows, queries))
        array = np.array([evaluator.values(run_of(lists)) for lists in ranked.values()])
        return MeasureValues(runs, queries, evaluator.names, array).without_failed(evaluator.failures)
    judged: dict[str, list[float]] = {query_id: [] for query_id in queries}
    for (query_id, _), label in labels.items():
        judged[query_id].append(label)
    array = np.empty((len(runs), len(queries), len(measures)))
    for row, column in np.ndindex(len(runs), len(queries)):
        query_id = queries[column]
        gains = [labels.get((query_id, doc_id), 0.0) for doc_id in ranked[runs[row]].get(query_id, ())]
        array[row, column] = [_fractional(each, gains, judged[query_id]) for each in measures]
    return MeasureValues(runs, queries, tuple(map(str, measures)), array)


def _fractional(measure: Measure, gains: Sequence[float], judged: Sequence[float]) -> float:
    """Return a measure's value of a list with these labels; `judged` has all labels of the query."""
    cutoff: int | None = measure.params.get("cutoff")
    if measure.NAME == "Success":
        return max(gains[:cutoff], default=0.0)
    if measure.NAME == "P":
        return math.fsum(gains[:cutoff]) / (cutoff or 1)
    ideal = _dcg(sorted(judged, reverse=True)[:cutoff])
    return _dcg(gains[:cutoff]) / ideal if ideal else 0.0


def _dcg(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
