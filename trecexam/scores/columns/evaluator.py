"""Values of measures for all queries of a run at once: on columns, or by ir_measures' own providers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import ir_measures
import numpy as np
from ir_measures import Measure, Metric
from numpy.typing import NDArray

from converters.records import Qrel
from converters.run import Run
from trecexam.errors import shortened
from trecexam.scores.columns.judged import UNJUDGED, Judged
from trecexam.scores.columns.measures import MEASURES
from trecexam.scores.columns.measures.base import DIVERSITY, Computation, check_parameters
from trecexam.scores.columns.ranked import Hits, Ranked, rows_at_ranks
from trecexam.scores.labels import item_qrels, naming, reaching


def supported(measure: Measure) -> bool:
    """Return True if columns compute this measure with these parameters, with the same values as ir_measures.

    False are: other measures; a label, or cutoff, below 1; gains that are not whole numbers; alpha_nDCG
    without a cutoff of at most 20, with judged_only, or an alpha outside 0..1; RR(judged_only=True)@k and
    NumRel(rel=2), which ir_measures has no provider for. nDCG(dcg='exp-log2') is computed for any ids and
    labels, where ir_measures' gdeval takes numeric ids and labels up to 4.
    """
    declared = MEASURES.get(measure.NAME or "")
    if declared is None or not measure.params.keys() <= declared.parameters & measure.SUPPORTED_PARAMS.keys():
        return False
    try:
        check_parameters(measure)
    except ValueError:
        return False
    return declared.takes(measure)


class Evaluator:
    """Evaluates runs on fixed judgments; values that depend only on judgments are computed once.

    Measures that are not `supported` are left to ir_measures' own providers.

    Args:
        measures: as `trecexam.scores.measures.measure` parses them.
        judged: the judgments.

    Raises:
        ValueError: a measure cannot be computed on these judgments; with the reason.

    Attributes:
        names: the measures, as ir_measures prints them; each is there once.
        depth: the largest depth of the measures on columns; None for whole rankings.
        failures: the measures whose provider in ir_measures failed so far, and why.
    """

    def __init__(self, measures: Iterable[Measure], judged: Judged) -> None:
        by_name = {str(measure): measure for measure in measures}
        self.names = tuple(by_name)
        self.judged = judged
        on_columns = {name: measure for name, measure in by_name.items() if supported(measure)}
        self._computations: dict[str, Computation] = {
            name: MEASURES[measure.NAME or ""].computation(measure, judged)
            for name, measure in on_columns.items()
        }
        depths = [MEASURES[measure.NAME or ""].depth(measure) for measure in on_columns.values()]
        self.depth = None if None in depths else max(filter(None, depths), default=1)
        self._others = ByIrMeasures([by_name[name] for name in self.names if name not in on_columns], judged)
        self.failures: Mapping[str, str] = self._others.failures

    def values(self, run: Run, ranked: Ranked | None = None) -> NDArray[np.float64]:
        """Return the values, float64 of shape (queries of the judgments, measures).

        0 where the run skips the query, where the query has no judgments, and where a value is undefined
        (0/0); NaN for a measure whose provider fails.

        Args:
            ranked: the run's join with the judgments, at the first `depth` ranks at least, if it is known.
        """
        values = np.zeros((len(self.judged.query_ids), len(self.names)), np.float64)
        column_of = {name: column for column, name in enumerate(self.names)}
        if self._computations:
            hits = Hits.of(ranked or rows_at_ranks(run, self.judged, self.depth), self.judged)
            for name, compute in self._computations.items():
                values[:, column_of[name]] = compute(hits)
        row_of = {query_id: row for row, query_id in enumerate(self.judged.query_ids)}
        for metric in self._others.values(run):
            values[row_of[metric.query_id], column_of[str(metric.measure)]] = metric.value
        return values


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
        #: What evaluates a run by each measure. Together, ir_measures' pytrec_eval provider mixes some up.
        self._evaluators: dict[Measure, Callable[[], Any]] = {}
        labels = _label_rows(judged) if measures else []
        for measure in measures if labels else ():
            rows = _item_rows(judged, measure["rel"]) if measure.NAME in DIVERSITY else labels
            self._evaluators[measure] = cache(partial(ir_measures.evaluator, [measure], rows))

    def values(self, run: Run) -> Iterator[Metric]:
        """Yield the values of a run that are defined; NaN for all queries where a provider fails."""
        if not self._evaluators:
            return
        # Scores n, n-1, ..., 1, so that no provider finds a tie. Whole numbers up to 2**24 are exact as
        # 32-bit floats, which pytrec_eval compares.
        rankings = {query_id: run.ranking(query_id) for query_id in self._query_ids if query_id in run}
        scores = {
            query_id: {doc_id: float(score) for score, doc_id in enumerate(reversed(ranking), 1)}
            for query_id, ranking in rankings.items()
        }
        for measure, evaluator in self._evaluators.items():
            try:
                metrics = list(evaluator().iter_calc(scores))
            # Providers call other programs and libraries, which raise whatever they like.
            except Exception as error:
                first_line = next(iter(str(error).splitlines()), "")
                self.failures[str(measure)] = shortened(f"{type(error).__name__}: {first_line}".rstrip(": "))
                yield from (Metric(query_id, measure, math.nan) for query_id in scores)
            else:
                yield from (m for m in metrics if m.query_id in scores and math.isfinite(m.value))


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
    """Return the labels of passages on items, as ndeval reads them.

    Rows name every item (`naming`). With rel=1, ratings count from the judgments' `min_rating` on; a greater
    rel is compared with the ratings, whose rows are in the order of the passages, from the lowest rating.
    Another query has two subtopics: without any, ir_measures' ndeval provider writes a warning to stderr.
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
