"""Evaluates runs per query on rubric ratings or official judgments with `ir_measures`.

Runs are rankings: trec_eval's order (score descending, ties by docno descending) is settled before they
get here, and every provider sees the scores n, n-1, ..., 1, so none can break a tie in its own way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Any

import ir_measures
from ir_measures import Measure, Metric

from converters.records import Qrel
from trecexam.errors import shortened
from trecexam.scores.labels import LabelRule, RubricQrel, label_qrels, rating_qrels, subtopic_qrels
from trecexam.scores.measures import COVER, DIVERSITY, measure
from trecexam.scores.ratings import QueryRatings

__all__ = ["Evaluate", "OfficialJudgments", "RubricJudgments", "measure"]

#: query_id -> its doc_ids, best first.
Rankings = Mapping[str, Sequence[str]]
#: Gives a run's values: query_id -> measure, as ir_measures prints it -> value.
Evaluate = Callable[[Rankings], dict[str, dict[str, float]]]
#: Measure -> why the provider of ir_measures that computes it failed.
Failures = dict[str, str]
#: Measures that can share one pass over a run, and the qrels rows that they are computed on.
_Group = tuple[list[Measure], Sequence[Any]]

#: ir_measures' pytrec_eval provider mixes up measures that differ in other parameters than these
#: when they are computed together.
_SHAREABLE = frozenset(("cutoff", "rel"))
#: What the second column of plain qrels holds.
_NO_SUBTOPIC = frozenset(("0", "Q0"))
_DUMMY_QUERY = "trecexam: two subtopics"
#: Judged not relevant where no label is 0 or more. No run has it: ids in runs have no spaces.
_DUMMY_DOC = "trecexam: not relevant"


class RubricJudgments:
    """Rubric ratings as judgments.

    Cover and nCover are computed on the items' ratings. Diversity measures (alpha_nDCG and similar ones) take
    the
    items as subtopics: with rel=1, the default, on the 0/1 rows that `subtopic_qrels` exports for
    min_rating, so that ndeval gives the same on that file; with a greater rel on the ratings
    themselves. All others are computed on the labels.

    Args:
        queries: the ratings of each query.
        rule, min_rating, min_answers: as in `trecexam.scores.labels.labels`.
    """

    def __init__(
        self,
        queries: Iterable[QueryRatings],
        rule: LabelRule = "max",
        min_rating: int = 4,
        min_answers: int = 1,
    ) -> None:
        self._queries = {q.query_id: q for q in queries}
        self._rule: LabelRule = rule
        self._min_rating = min_rating
        self._min_answers = min_answers

    @property
    def query_ids(self) -> tuple[str, ...]:
        """The queries, sorted."""
        return tuple(sorted(self._queries))

    def evaluator(
        self, measures: Sequence[str | Measure], query_ids: Sequence[str], failures: Failures | None = None
    ) -> Evaluate:
        """A function that evaluates runs.

        Its result has exactly these queries and measures. A query that a run skips, or that has no
        judgments, gets 0, and so does an undefined (0/0) value. Where a provider of ir_measures fails, the
        values are NaN.

        Args:
            failures: gets the measures whose provider fails.

        Raises:
            ValueError: a measure cannot be computed on these judgments; with the reason.
        """
        metrics = [measure(name) for name in measures]
        queries = [self._queries[query] for query in dict.fromkeys(query_ids) if query in self._queries]
        rows: list[RubricQrel] = list(label_qrels(queries, self._rule, self._min_rating, self._min_answers))
        subtopics = cache(lambda: [row for q in queries for row in subtopic_qrels(q, self._min_rating)])
        ratings = cache(lambda: [row for q in queries for row in rating_qrels(q)])
        groups: list[_Group] = []
        for metric in metrics:
            if metric.NAME in DIVERSITY:
                at_min_rating = metric["rel"] == 1
                groups.append(([metric], _quiet(subtopics() if at_min_rating else ratings())))
        groups += _grouped([metric for metric in metrics if metric.NAME not in DIVERSITY], rows)
        return _evaluate(groups, metrics, query_ids, {} if failures is None else failures)


class OfficialJudgments:
    """Official qrels as judgments.

    Where a passage is judged several times for a query (once for each subtopic), measures that know no
    subtopics take its best label.

    Args:
        qrels: rows with query_id, doc_id, relevance, iteration: of `converters` or of `ir_measures`.
    """

    def __init__(self, qrels: Iterable[Qrel | ir_measures.Qrel]) -> None:
        self._labels: dict[str, dict[tuple[str, str], int]] = {}
        for row in qrels:
            judged = self._labels.setdefault(row.query_id, {})
            key = (row.doc_id, row.iteration)
            judged[key] = max(row.relevance, judged.get(key, row.relevance))

    @property
    def query_ids(self) -> tuple[str, ...]:
        """The judged queries, sorted."""
        return tuple(sorted(self._labels))

    def evaluator(
        self, measures: Sequence[str | Measure], query_ids: Sequence[str], failures: Failures | None = None
    ) -> Evaluate:
        """See `RubricJudgments.evaluator`. Diversity measures need subtopics in the qrels' second column."""
        metrics = [measure(name, official=True) for name in measures]
        diversity = [metric for metric in metrics if metric.NAME in DIVERSITY]
        if diversity and not self._has_subtopics():
            raise ValueError(
                f"{diversity[0]} needs subtopics, and the second column of the official judgments, which "
                "would name them, is 0 in every row"
            )
        rows: list[Qrel] = []
        best: dict[tuple[str, str], int] = {}
        for query_id in dict.fromkeys(query_ids):
            for (doc_id, iteration), label in self._labels.get(query_id, {}).items():
                rows.append(Qrel(query_id, doc_id, label, iteration))
                best[query_id, doc_id] = max(label, best.get((query_id, doc_id), label))
        # To trec_eval all negative labels are one. It dies, or counts for hours, of a query without another:
        # it clears as many counts as there are labels up to the best one, and takes them to be more.
        merged = [Qrel(query_id, doc_id, max(label, -1)) for (query_id, doc_id), label in best.items()]
        counted = {row.query_id for row in merged if row.relevance >= 0}
        merged += [
            Qrel(query_id, _DUMMY_DOC, 0)
            for query_id in dict.fromkeys(row.query_id for row in merged)
            if query_id not in counted
        ]
        groups = _grouped([metric for metric in metrics if metric.NAME not in DIVERSITY], merged)
        groups += [([metric], _quiet(rows)) for metric in diversity]
        return _evaluate(groups, metrics, query_ids, {} if failures is None else failures)

    def _has_subtopics(self) -> bool:
        return any(
            iteration not in _NO_SUBTOPIC for judged in self._labels.values() for _, iteration in judged
        )


def _grouped(metrics: Iterable[Measure], rows: Sequence[Any]) -> list[_Group]:
    shared: list[Measure] = []
    cover: list[Measure] = []
    single: list[list[Measure]] = []
    for metric in metrics:
        if metric.NAME in COVER:
            cover.append(metric)
        elif metric.params.keys() <= _SHAREABLE:
            shared.append(metric)
        else:
            single.append([metric])
    return [(group, rows) for group in (shared, cover, *single) if group]


def _quiet(rows: list[Qrel]) -> list[Qrel]:
    """The rows with an additional query with two subtopics.

    Without any such query ir_measures' ndeval provider writes a warning to stderr. Values are by query,
    so that the added one, which no run answers, changes none.
    """
    return [*rows, Qrel(_DUMMY_QUERY, "d", 5, "1"), Qrel(_DUMMY_QUERY, "d", 5, "2")] if rows else []


class _Provided:
    """Measures that ir_measures computes in one pass over a run."""

    def __init__(self, measures: Sequence[Measure], rows: Sequence[Any]) -> None:
        self._measures, self._rows = measures, rows

    @cached_property
    def _evaluator(self) -> Any:
        return ir_measures.evaluator(self._measures, self._rows)

    @cached_property
    def _alone(self) -> list[_Provided]:
        return [_Provided([measure], self._rows) for measure in self._measures]

    def metrics(self, run: Mapping[str, Mapping[str, float]], failures: Failures) -> Iterator[Metric]:
        """Yield the values of a run, NaN for each query of a measure whose provider fails."""
        try:
            yield from list(self._evaluator.iter_calc(run))
        # Providers call other programs and libraries, which raise whatever they like.
        except Exception as error:
            if self._measures[0].NAME in COVER:
                # Computed here: it says why these judgments do not suit it.
                raise
            if len(self._measures) > 1:
                for alone in self._alone:
                    yield from alone.metrics(run, failures)
                return
            (measure,) = self._measures
            first_line = next(iter(str(error).splitlines()), "")
            failures[str(measure)] = shortened(f"{type(error).__name__}: {first_line}".rstrip(": "))
            yield from (Metric(query_id, measure, math.nan) for query_id in run)


def _evaluate(
    groups: Iterable[_Group], metrics: Sequence[Measure], query_ids: Sequence[str], failures: Failures
) -> Evaluate:
    provided = [_Provided(measures, rows) for measures, rows in groups if rows]
    defaults = {str(metric): float(metric.DEFAULT) for metric in metrics}

    def evaluate(rankings: Rankings) -> dict[str, dict[str, float]]:
        values = {query_id: dict(defaults) for query_id in query_ids}
        run = {query_id: _scores(rankings[query_id]) for query_id in values if rankings.get(query_id)}
        for each in provided:
            for metric in each.metrics(run, failures):
                if metric.query_id in values:
                    value = float(metric.value)
                    defined = math.isfinite(value) or str(metric.measure) in failures
                    values[metric.query_id][str(metric.measure)] = value if defined else 0.0
        return values

    return evaluate


def _scores(ranking: Sequence[str]) -> dict[str, float]:
    # Whole numbers up to 2**24 are exact as 32-bit floats, which pytrec_eval compares.
    return {doc_id: float(score) for score, doc_id in enumerate(reversed(ranking), 1)}
