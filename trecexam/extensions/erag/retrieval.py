"""Scores ranked lists by their documents' labels in 0..1, as in eRAG.

Salemi and Zamani, "Evaluating Retrieval Quality in Retrieval-Augmented Generation", SIGIR 2024, section 3.
Where all labels are 0 or 1, `ir_measures` computes all. Where one is not, with l(i) the label at rank i:

    P@k    = (l(1) + ... + l(k)) / k
    Hit@k  = max(l(1), ..., l(k))                         (ir_measures: Success)
    nDCG@k = sum of l(i) / log2(i + 1), over the same sum of the query's labels in falling order

and no other measure is defined. P and Hit are eRAG's; on labels of 0 and 1 all three are the usual measures.

A document without a label counts as 0. A list shorter than k is as if such documents followed: P@k divides by
k. A measure without a cutoff is of the whole list: P divides by its length. Of an empty list all are 0.
What can be found (R, AP, nDCG) is what has a label, whichever run retrieved it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from ir_measures import Measure

from converters.records import Qrel
from trecexam.scores.evaluate import Evaluate, OfficialJudgments, Rankings
from trecexam.scores.measures import COVER, DIVERSITY, measure

#: query_id -> doc_id -> label, 0..1.
Labels = Mapping[str, Mapping[str, float]]
#: Names of eRAG's measures beside those of ir_measures.
ALIASES = {"MAP": "AP", "MRR": "RR", "NDCG": "nDCG", "Hit": "Success", "Precision": "P", "Recall": "R"}
#: Measures that are defined for fractional labels.
FRACTIONAL = ("P", "Hit", "nDCG")
_BY_CASE = {name.lower(): name for name in (*ALIASES.values(), *ALIASES)}
_NAME = re.compile(r"\s*([A-Za-z_]+)(.*)", re.S)
#: ir_measures has these with a cutoff alone.
_CUT = frozenset(("P", "R", "Success"))
_FRACTIONAL = frozenset(("P", "Success", "nDCG"))


@dataclass(frozen=True)
class RetrievalMeasure:
    """A measure of ranked lists.

    Attributes:
        name: as the user wrote it where that is an alias, else as ir_measures prints it.
        of: the measure; of a bare P, R or Success the one at 1, where each list's length counts instead.
        whole: whether that is so.
    """

    name: str
    of: Measure
    whole: bool = False

    @property
    def takes_fractions(self) -> bool:
        """Whether it is defined for labels other than 0 and 1."""
        return self.of.NAME in _FRACTIONAL and self.of.params.keys() <= {"cutoff"}

    @property
    def cutoff(self) -> int | None:
        """The cutoff; None for the whole list."""
        cutoff: int | None = None if self.whole else self.of.params.get("cutoff")
        return cutoff


def retrieval_measure(name: str | Measure) -> RetrievalMeasure:
    """The measure of this name: one of ir_measures', or an alias: MAP, MRR, NDCG, Hit, Precision, Recall.

    Raises:
        ValueError: it does not exist, or it needs items of a test bank; with the reason.
    """
    if isinstance(name, Measure):
        name = str(name)
    parts = _NAME.fullmatch(name)
    base, rest = (parts[1], parts[2].rstrip()) if parts else (name, "")
    standard_name = ALIASES.get(base, base)
    whole = standard_name in _CUT and "@" not in rest and "cutoff" not in rest
    try:
        parsed = measure(f"{standard_name}{rest}@1" if whole else f"{standard_name}{rest}")
    except ValueError as error:
        suggestion = _BY_CASE.get(base.lower())
        if suggestion is None or base in (*ALIASES, *ALIASES.values()):
            raise ValueError(str(error).replace(repr(f"{standard_name}{rest}"), repr(name))) from None
        raise ValueError(f"unknown measure {name!r}; did you mean {suggestion}{rest}?") from None
    if parsed.NAME in COVER or parsed.NAME in DIVERSITY:
        raise ValueError(f"{parsed} needs a test bank's items, and a document's label is one number")
    printed = str(parsed).removesuffix("@1") if whole else str(parsed)
    return RetrievalMeasure(printed if standard_name == base else name.strip(), parsed, whole)


def is_binary(labels: Labels) -> bool:
    """Whether all labels are 0 or 1 (true without labels)."""
    return all(label in (0, 1) for by_document in labels.values() for label in by_document.values())


def retrieval_evaluator(
    labels: Labels, measures: Sequence[RetrievalMeasure], query_ids: Sequence[str]
) -> Evaluate:
    """A function from a run to query_id -> measure -> value, for exactly these queries and measures.

    A query that the run skips has 0.

    Raises:
        ValueError: a measure is not defined for fractional labels, and there are such.
    """
    if is_binary(labels):
        return _binary(labels, measures, query_ids)
    for each in measures:
        if not each.takes_fractions:
            raise ValueError(fractions_refused(each))

    def evaluate(rankings: Rankings) -> dict[str, dict[str, float]]:
        return {
            query_id: {
                each.name: _fractional(each, rankings.get(query_id, ()), labels.get(query_id, {}))
                for each in measures
            }
            for query_id in query_ids
        }

    return evaluate


def fractions_refused(measure: RetrievalMeasure) -> str:
    """The reason why a measure cannot be computed on fractions."""
    able = " and ".join((", ".join(FRACTIONAL[:-1]), FRACTIONAL[-1]))
    return f"{measure.name} needs labels of 0 and 1, but some are fractions; use {able}"


def _binary(labels: Labels, measures: Sequence[RetrievalMeasure], query_ids: Sequence[str]) -> Evaluate:
    judged = OfficialJudgments(
        Qrel(query_id, doc_id, int(label))
        for query_id, by_document in labels.items()
        for doc_id, label in by_document.items()
    )
    plain = judged.evaluator([each.of for each in measures if not each.whole], query_ids)

    @cache
    def of_length(length: int) -> Evaluate:
        """The measures of whole lists, for lists of this length."""
        return judged.evaluator([_at(each, length) for each in measures if each.whole], query_ids)

    def evaluate(rankings: Rankings) -> dict[str, dict[str, float]]:
        lengths = {query_id: len(rankings.get(query_id, ())) for query_id in query_ids}
        values = plain(rankings)
        for length in set(lengths.values()) if any(each.whole for each in measures) else ():
            same = {q: rankings.get(q, ()) for q in query_ids if lengths[q] == length}
            of_whole = of_length(length)(same)
            for query_id in same:
                values[query_id] |= of_whole[query_id]
        return {
            query_id: {each.name: values[query_id][str(_at(each, lengths[query_id]))] for each in measures}
            for query_id in query_ids
        }

    return evaluate


def _at(measure: RetrievalMeasure, length: int) -> Measure:
    """The measure, of a list of this length."""
    return (
        type(measure.of)(**{**measure.of.params, "cutoff": max(1, length)}) if measure.whole else measure.of
    )


def _fractional(measure: RetrievalMeasure, ranking: Sequence[str], labels: Mapping[str, float]) -> float:
    gains = [float(labels.get(doc_id, 0)) for doc_id in ranking[: measure.cutoff]]
    if measure.of.NAME == "Success":
        return max(gains, default=0.0)
    if measure.of.NAME == "P":
        length = measure.cutoff or len(gains)
        return math.fsum(gains) / length if length else 0.0
    ideal = _dcg(sorted(labels.values(), reverse=True)[: measure.cutoff])
    return _dcg(gains) / ideal if ideal else 0.0


def _dcg(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
