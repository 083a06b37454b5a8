"""Values of measures of runs on queries, as one array."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trecexam.results.table import Table
from trecexam.results.text import CHANGES, Note

#: Means that agree to so many decimals are ties: they differ by no more than how a sum was rounded.
TIE_DECIMALS = 12


@dataclass(frozen=True, eq=False)
class MeasureValues:
    """Every run's value on every query of every measure.

    Attributes:
        runs: their names.
        query_ids: the queries.
        measures: as ir_measures prints them.
        array: float64 of shape (runs, queries, measures).
        failures: measures without values, since their provider in ir_measures failed, and why.
    """

    runs: tuple[str, ...]
    query_ids: tuple[str, ...]
    measures: tuple[str, ...]
    array: NDArray[np.float64]
    failures: Mapping[str, str] = field(default_factory=dict)

    def without_failed(self, reasons: Mapping[str, str]) -> MeasureValues:
        """Return the values without measures of which some are NaN; where all are, with the first alone.

        Args:
            reasons: measure -> why its provider failed.
        """
        failed: NDArray[np.bool_] = np.asarray(np.isnan(self.array).any(axis=(0, 1)))
        if not failed.any():
            return self
        kept = ~failed if not failed.all() else np.arange(len(self.measures)) < 1
        names = [name for name, each in zip(self.measures, failed.tolist(), strict=True) if each]
        return MeasureValues(
            self.runs,
            self.query_ids,
            tuple(itertools.compress(self.measures, kept.tolist())),
            self.array[:, :, kept],
            {name: reasons[name] for name in names},
        )

    @property
    def failure_notes(self) -> tuple[str, ...]:
        """A line on each measure whose provider failed."""
        return tuple(
            Note(f"{name} has no values: ir_measures failed ({why})", CHANGES)
            for name, why in self.failures.items()
        )

    def of_runs(self, runs: Sequence[str]) -> MeasureValues:
        """Return the values of only these runs, in this order; KeyError for a run without values."""
        return replace(self, runs=tuple(runs), array=self.array[[self._row[run] for run in runs]])

    def matrix(
        self, measure: str, runs: Sequence[str] | None = None, query_ids: Iterable[str] | None = None
    ) -> NDArray[np.float64]:
        """Return the values of a measure, shape (runs, queries); None selects all runs or queries.

        Raises:
            KeyError, ValueError: a run, a query or the measure has no values.
        """
        matrix = self.array[:, :, self.measures.index(measure)]
        if runs is not None:
            matrix = matrix[[self._row[run] for run in runs]]
        if query_ids is not None:
            matrix = matrix[:, [self._column[query_id] for query_id in query_ids]]
        return matrix

    @cached_property
    def _row(self) -> dict[str, int]:
        return {run: row for row, run in enumerate(self.runs)}

    @cached_property
    def _column(self) -> dict[str, int]:
        return {query_id: column for column, query_id in enumerate(self.query_ids)}


def rounded(table: Table, digits: int) -> Table:
    """Round a table's floats for files, display and JSON: further digits are not certain."""
    rows = (tuple(round(v, digits) + 0.0 if isinstance(v, float) else v for v in row) for row in table.rows)
    return replace(table, rows=tuple(rows), digits=digits)
