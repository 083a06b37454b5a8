"""Scores ranked lists by their documents' labels in 0..1, as in eRAG.

Salemi and Zamani, "Evaluating Retrieval Quality in Retrieval-Augmented Generation", SIGIR 2024, section 3.
Where all labels are 0 or 1, `ir_measures` computes all. Where one is not, with l(i) the label at rank i:

    P@k    = (l(1) + ... + l(k)) / k
    Success@k = max(l(1), ..., l(k))                      (eRAG: Hit)
    nDCG@k = sum of l(i) / log2(i + 1), over the same sum of the query's labels in falling order

and no other measure is defined. P and Success are eRAG's; on labels of 0 and 1 all three are the usual
measures.

A document without a label counts as 0. A list shorter than k is as if such documents followed: P@k divides by
k. Of an empty list all are 0.
What can be found (R, AP, nDCG) is what has a label, whichever run retrieved it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from ir_measures import Measure

from converters.records import Qrel
from trecexam.scores.columns.evaluator import Evaluator
from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.ranked import run_of
from trecexam.scores.measures import COVER, DIVERSITY, measure

#: query_id -> its doc_ids, best first.
Rankings = Mapping[str, Sequence[str]]
#: Gives a run's values: query_id -> measure, as ir_measures prints it -> value.
Evaluate = Callable[[Rankings], dict[str, dict[str, float]]]
#: query_id -> doc_id -> label, 0..1.
Labels = Mapping[str, Mapping[str, float]]
#: Measures that are defined for fractional labels.
FRACTIONAL = ("P", "Success", "nDCG")


def retrieval_measure(name: str | Measure) -> Measure:
    """The measure of this name, in ir_measures' notation.

    Raises:
        ValueError: it does not exist, or it needs items of a test bank; with the reason.
    """
    parsed = measure(str(name))
    if parsed.NAME in COVER or parsed.NAME in DIVERSITY:
        raise ValueError(f"{parsed} needs a test bank's items, and a document's label is one number")
    return parsed


def takes_fractions(measure: Measure) -> bool:
    """Whether a measure is defined for labels other than 0 and 1."""
    return measure.NAME in FRACTIONAL and measure.params.keys() <= {"cutoff"}


def is_binary(labels: Labels) -> bool:
    """Whether all labels are 0 or 1 (true without labels)."""
    return all(label in (0, 1) for by_document in labels.values() for label in by_document.values())


def retrieval_evaluator(labels: Labels, measures: Sequence[Measure], query_ids: Sequence[str]) -> Evaluate:
    """A function from a run to query_id -> measure -> value, for exactly these queries and measures.

    A query that the run skips has 0.

    Raises:
        ValueError: a measure is not defined for fractional labels, and there are such.
    """
    if is_binary(labels):
        rows = (
            Qrel(query_id, doc_id, int(label))
            for query_id in query_ids
            for doc_id, label in labels.get(query_id, {}).items()
        )
        evaluator = Evaluator(measures, Judged.from_qrels(rows, query_ids))

        def on_columns(rankings: Rankings) -> dict[str, dict[str, float]]:
            values = evaluator.values(run_of(rankings)).tolist()
            return {
                query_id: dict(zip(evaluator.names, of_query, strict=True))
                for query_id, of_query in zip(query_ids, values, strict=True)
            }

        return on_columns
    for each in measures:
        if not takes_fractions(each):
            raise ValueError(fractions_refused(each))

    def evaluate(rankings: Rankings) -> dict[str, dict[str, float]]:
        return {
            query_id: {
                str(each): _fractional(each, rankings.get(query_id, ()), labels.get(query_id, {}))
                for each in measures
            }
            for query_id in query_ids
        }

    return evaluate


def fractions_refused(measure: Measure) -> str:
    """The reason why a measure cannot be computed on fractions."""
    able = " and ".join((", ".join(FRACTIONAL[:-1]), FRACTIONAL[-1]))
    return f"{measure} needs labels of 0 and 1, but some are fractions; use {able}"


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
