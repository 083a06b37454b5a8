"""Values by ir_measures' own providers, of measures that columns do not compute."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import ir_measures
from ir_measures import Measure, Metric

from converters.records import Qrel
from converters.run import Run
from trecexam.errors import shortened
from trecexam.scores.columns.judged import UNJUDGED, Judged
from trecexam.scores.labels import item_qrels, naming, reaching
from trecexam.scores.parameters import DIVERSITY

#: ir_measures' pytrec_eval provider mixes up measures that differ in other parameters than these
#: when they are computed together.
_SHAREABLE = frozenset(("cutoff", "rel"))
_DUMMY_QUERY = "trecexam: two subtopics"
#: Judged not relevant where no label is 0 or more. No run has it: ids in runs have no spaces.
_DUMMY_DOC = "trecexam: not relevant"


class ByIrMeasures:
    """Evaluates runs with ir_measures' own providers, on rows that are made of judgments once.

    Attributes:
        failures: the measures whose provider failed so far, and why.
    """

    def __init__(self, measures: Sequence[Measure], judged: Judged) -> None:
        self.failures: dict[str, str] = {}
        self._query_ids = judged.query_ids
        labels = _label_rows(judged) if measures else []
        shared = [m for m in measures if m.NAME not in DIVERSITY and m.params.keys() <= _SHAREABLE]
        self._groups = [_Group(shared, labels)] if shared and labels else []
        for measure in measures if labels else ():
            if measure not in shared:
                rows = _item_rows(judged, measure["rel"]) if measure.NAME in DIVERSITY else labels
                self._groups.append(_Group([measure], rows))

    def values(self, run: Run) -> Iterator[Metric]:
        """Yield the values of a run that are defined; NaN for all queries where a provider fails."""
        if not self._groups:
            return
        scores = {query_id: _scores(run.ranking(query_id)) for query_id in self._query_ids if query_id in run}
        groups = list(self._groups)
        while groups:
            group = groups.pop()
            try:
                metrics = list(group.evaluator.iter_calc(scores))
            # Providers call other programs and libraries, which raise whatever they like.
            except Exception as error:
                if len(group.measures) > 1:
                    groups += group.alone
                    continue
                (measure,) = group.measures
                first_line = next(iter(str(error).splitlines()), "")
                self.failures[str(measure)] = shortened(f"{type(error).__name__}: {first_line}".rstrip(": "))
                yield from (Metric(query_id, measure, math.nan) for query_id in scores)
            else:
                yield from (m for m in metrics if m.query_id in scores and math.isfinite(m.value))


class _Group:
    """Measures that ir_measures computes in one pass over a run."""

    def __init__(self, measures: Sequence[Measure], rows: Sequence[Qrel]) -> None:
        self.measures, self._rows = measures, rows

    @cached_property
    def evaluator(self) -> Any:
        return ir_measures.evaluator(self.measures, self._rows)

    @cached_property
    def alone(self) -> list[_Group]:
        return [_Group([measure], self._rows) for measure in self.measures]


def _label_rows(judged: Judged) -> list[Qrel]:
    """The labels of passages, as pytrec_eval can read them.

    To trec_eval all negative labels are one. It dies, or counts for hours, of a query without another: it
    clears as many counts as there are labels up to the best one, and takes them to be more.
    """
    query_ids = [judged.query_ids[query] for query in judged.query_of_row.tolist()]
    rows = [
        Qrel(query_id, doc_id, max(label, -1))
        for query_id, doc_id, label in zip(
            query_ids, judged.doc_ids.to_pylist(), judged.labels.tolist(), strict=True
        )
        if label != UNJUDGED
    ]
    counted = {row.query_id for row in rows if row.relevance >= 0}
    negative = dict.fromkeys(row.query_id for row in rows if row.query_id not in counted)
    return rows + [Qrel(query_id, _DUMMY_DOC, 0) for query_id in negative]


def _item_rows(judged: Judged, rel: int) -> list[Qrel]:
    """The labels of passages on items, as ndeval reads them.

    Rows name every item (`naming`). With rel=1, ratings count from the judgments' `min_rating` on; a greater
    rel is compared with the ratings, whose rows are in the order of the passages, from the lowest rating.
    Another query has two subtopics: without any such query ir_measures' ndeval provider writes a warning to
    stderr.
    """
    rows: list[Qrel] = []
    doc_ids, labelled = judged.doc_ids.to_pylist(), judged.labels != UNJUDGED
    for query_id, ratings, (start, end) in zip(
        judged.query_ids, judged.of_items, itertools.pairwise(judged.offsets.tolist()), strict=True
    ):
        named = naming(ratings, labelled[start:end])
        if judged.min_rating is not None and rel == 1:
            named = reaching(named, judged.min_rating)
        of_query = item_qrels(query_id, doc_ids[start:end], named)
        if judged.min_rating is not None and rel > 1:
            of_query = iter(sorted(of_query, key=lambda row: (row.doc_id, row.relevance)))
        rows += of_query
    return [*rows, Qrel(_DUMMY_QUERY, "d", 5, "1"), Qrel(_DUMMY_QUERY, "d", 5, "2")]


def _scores(ranking: Sequence[str]) -> dict[str, float]:
    """Scores n, n-1, ..., 1, so that no provider finds a tie."""
    # Whole numbers up to 2**24 are exact as 32-bit floats, which pytrec_eval compares.
    return {doc_id: float(score) for score, doc_id in enumerate(reversed(ranking), 1)}
