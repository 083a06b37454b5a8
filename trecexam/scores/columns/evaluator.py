"""Values of measures for all queries of a run at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from ir_measures import Measure
from numpy.typing import NDArray

import trecexam.scores.cover  # noqa: F401  registers Cover and its kin
from converters.run import Run
from trecexam.scores.columns.by_ir_measures import ByIrMeasures
from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.measures import MEASURES
from trecexam.scores.columns.measures.base import Computation
from trecexam.scores.columns.ranked import Hits, Ranked, rows_at_ranks
from trecexam.scores.parameters import check_parameters


def supported(measure: Measure) -> bool:
    """Whether columns compute this measure with these parameters, with the same values as ir_measures.

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

    @property
    def failures(self) -> Mapping[str, str]:
        """The measures whose provider in ir_measures failed so far, and why."""
        return self._others.failures

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
