"""Values of measures for all queries of a run at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from ir_measures import Measure
from numpy.typing import NDArray

import trecexam.scores.cover  # noqa: F401  registers Cover and its kin
from converters.run import Run
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


class ColumnEvaluator:
    """Evaluates runs on fixed judgments; values that depend only on judgments are computed once.

    Args:
        measures: each of them `supported`.
        judged: the judgments.

    Raises:
        ValueError: a measure is not supported, or cannot be computed on these judgments; with the reason.
    """

    def __init__(self, measures: Sequence[Measure], judged: Judged) -> None:
        for measure in measures:
            if not supported(measure):
                raise ValueError(f"{measure.NAME} with these parameters is not computed on columns")
        self.measures = tuple(measures)
        self.judged = judged
        self._computations: list[Computation] = [
            MEASURES[measure.NAME or ""].computation(measure, judged) for measure in measures
        ]
        #: The largest depth of the measures; None for whole rankings.
        self.depth = _depth(self.measures)

    def values(self, run: Run) -> NDArray[np.float64]:
        """The values of all measures on all queries.

        Returns:
            float64 of shape (queries of the judgments, measures), in their order; 0 where the run skips the
            query, where the query has no judgments, and where a value is undefined (0/0).
        """
        return self.values_at(rows_at_ranks(run, self.judged, self.depth))

    def values_at(self, ranked: Ranked) -> NDArray[np.float64]:
        """The values of a run that is joined with the judgments, at the first `depth` ranks at least."""
        hits = Hits.of(ranked, self.judged)
        values = np.zeros((len(self.judged.query_ids), len(self.measures)), np.float64)
        for column, compute in enumerate(self._computations):
            values[:, column] = compute(hits)
        return values


def _depth(measures: Sequence[Measure]) -> int | None:
    """The largest depth of the measures; None for whole rankings."""
    depths = [MEASURES[measure.NAME or ""].depth(measure) for measure in measures]
    return None if None in depths else max((depth for depth in depths if depth is not None), default=1)
