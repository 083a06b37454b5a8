"""Evaluates runs on judgments: on columns, and by ir_measures' providers what columns do not compute."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import ir_measures
import numpy as np
from ir_measures import Measure, Metric
from numpy.typing import NDArray

from converters.arrow import strings
from converters.records import Qrel
from converters.run import Run
from trecexam.errors import shortened
from trecexam.scores.columns.evaluator import ColumnEvaluator, supported
from trecexam.scores.columns.judged import UNJUDGED, Judged
from trecexam.scores.columns.ranked import Ranked
from trecexam.scores.labels import item_qrels, naming, reaching
from trecexam.scores.parameters import DIVERSITY

#: ir_measures' pytrec_eval provider mixes up measures that differ in other parameters than these
#: when they are computed together.
_SHAREABLE = frozenset(("cutoff", "rel"))
_DUMMY_QUERY = "trecexam: two subtopics"
#: Judged not relevant where no label is 0 or more. No run has it: ids in runs have no spaces.
_DUMMY_DOC = "trecexam: not relevant"


class Evaluator:
    """Evaluates runs on fixed judgments.

    Args:
        measures: as `trecexam.scores.measures.measure` parses them.
        judged: the judgments. Without a threshold of ratings (`min_rating`) a label of an item is the item's.

    Raises:
        ValueError: a measure cannot be computed on these judgments; with the reason.

    Attributes:
        names: the measures, as ir_measures prints them; each is there once.
        failures: the measures whose provider in ir_measures failed so far, and why.
    """

    def __init__(self, measures: Iterable[Measure], judged: Judged) -> None:
        by_name = {str(each): each for each in measures}
        self.names = tuple(by_name)
        self.failures: dict[str, str] = {}
        self.columns = ColumnEvaluator([each for each in by_name.values() if supported(each)], judged)
        others = [each for each in by_name.values() if not supported(each)]
        self._index = {name: index for index, name in enumerate(self.names)}
        self._groups = _groups(others, judged) if others else []

    def values(self, run: Run, ranked: Ranked | None = None) -> NDArray[np.float64]:
        """The values of a run, shape (queries of the judgments, measures).

        A query that the run skips, or that has no judgments, has 0, and so has an undefined (0/0) value. The
        values of a measure whose provider fails are NaN.

        Args:
            ranked: the run's join with the judgments, if it is known.
        """
        columns, query_ids = self.columns, self.columns.judged.query_ids
        values = np.zeros((len(query_ids), len(self.names)))
        if columns.measures:
            on_columns = columns.values(run) if ranked is None else columns.values_at(ranked)
            values[:, [self._index[str(each)] for each in columns.measures]] = on_columns
        if self._groups:
            row_of = {query_id: row for row, query_id in enumerate(query_ids)}
            scores = {query_id: _scores(run.ranking(query_id)) for query_id in query_ids if query_id in run}
            for metric in self._by_providers(scores):
                name = str(metric.measure)
                if metric.query_id in row_of and (math.isfinite(metric.value) or name in self.failures):
                    values[row_of[metric.query_id], self._index[name]] = metric.value
        return values

    def _by_providers(self, scores: Mapping[str, Mapping[str, float]]) -> Iterator[Metric]:
        """Yield the values of ir_measures' providers; NaN for all queries where a provider fails."""
        groups = list(self._groups)
        while groups:
            group = groups.pop()
            try:
                yield from list(group.evaluator.iter_calc(scores))
            # Providers call other programs and libraries, which raise whatever they like.
            except Exception as error:
                if len(group.measures) > 1:
                    groups += group.alone
                    continue
                (measure,) = group.measures
                first_line = next(iter(str(error).splitlines()), "")
                self.failures[str(measure)] = shortened(f"{type(error).__name__}: {first_line}".rstrip(": "))
                yield from (Metric(query_id, measure, math.nan) for query_id in scores)


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


def _groups(measures: Sequence[Measure], judged: Judged) -> list[_Group]:
    labels = _label_rows(judged)
    together = [m for m in measures if m.NAME not in DIVERSITY and m.params.keys() <= _SHAREABLE]
    single = [
        _Group([m], _item_rows(judged, m["rel"]) if m.NAME in DIVERSITY else labels)
        for m in measures
        if m not in together
    ]
    return [*([_Group(together, labels)] if together else []), *single] if labels else []


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


def run_of(rankings: Mapping[str, Sequence[str]]) -> Run:
    """Return a run of rankings, query_id -> distinct doc_ids, best first."""
    lengths = np.array([len(ranking) for ranking in rankings.values()], np.int64)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    doc_ids = strings([doc_id for ranking in rankings.values() for doc_id in ranking])
    return Run("", tuple(rankings), offsets, doc_ids, -np.arange(len(doc_ids), dtype=np.float64))
