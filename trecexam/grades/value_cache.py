"""Values of every run, query and measure, computed again only where runs or labels changed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.values import MeasureValues


class Stale(NamedTuple):
    """Runs to evaluate, and on which queries."""

    runs: tuple[str, ...]
    query_ids: tuple[str, ...]


class _OfRun(NamedTuple):
    content: Hashable
    values: NDArray[np.float64]


class ValueCache:
    """Per-query values of runs under one set of judgments and measures.

    A value depends on the run's ranking for the query and on the query's labels. Both have a token
    here; a value is kept while its tokens are the same. Who needs values computes those that are `stale`, and
    gives them to `put`.

    Attributes:
        evaluated: how many values of a run on a query were put.
        failures: measure -> why its provider failed.
        evaluator: measures and tokens of all queries, and what evaluates a run on them: a new run needs it.
    """

    def __init__(self) -> None:
        self._measures: tuple[str, ...] = ()
        self._tokens: dict[str, Hashable] = {}
        self._runs: dict[str, _OfRun] = {}
        self.evaluated = 0
        self.failures: dict[str, str] = {}
        self.evaluator: tuple[object, Any] | None = None

    def stale(
        self, contents: Mapping[str, Hashable], measures: Sequence[str], tokens: Mapping[str, Hashable]
    ) -> tuple[Stale, ...]:
        """Return what is to be evaluated: new runs on all queries, the other runs where labels changed.

        Args:
            contents: run -> a token of its file's content.
            measures: as ir_measures prints them.
            tokens: query_id -> a token of its labels.
        """
        known = self._runs if tuple(measures) == self._measures else {}
        new = tuple(run for run in contents if run not in known or known[run].content != contents[run])
        old = tuple(run for run in contents if run not in set(new))
        changed = tuple(q for q in tokens if q not in self._tokens or self._tokens[q] != tokens[q])
        parts = Stale(new, tuple(tokens)), Stale(old, changed)
        return tuple(part for part in parts if part.runs and part.query_ids)

    def put(
        self,
        contents: Mapping[str, Hashable],
        measures: Sequence[str],
        tokens: Mapping[str, Hashable],
        computed: Iterable[tuple[Stale, Iterable[NDArray[np.float64]]]],
    ) -> MeasureValues:
        """Return the values of every run on every query of `tokens`, and keep them.

        Args:
            contents, measures, tokens: as of `stale`.
            computed: each part of what `stale` returned, with its runs' values, of shape (queries, measures).
        """
        query_ids = tuple(tokens)
        query_index = {query_id: index for index, query_id in enumerate(query_ids)}
        cached = self._following(query_ids, len(measures)) if tuple(measures) == self._measures else {}
        evaluated = self.evaluated
        for part, arrays in computed:
            rows = [query_index[query_id] for query_id in part.query_ids]
            for run, values in zip(part.runs, arrays, strict=True):
                whole = values
                if len(rows) < len(query_ids):
                    whole = cached[run].values.copy()
                    whole[rows] = values
                cached[run] = _OfRun(contents[run], whole)
                evaluated += len(rows)
        # Without queries there is nothing to evaluate on.
        nothing = np.zeros((len(query_ids), len(measures)))
        # Not before: where an evaluation was broken off, all is as it was.
        self._measures, self._tokens, self.evaluated = tuple(measures), dict(tokens), evaluated
        self._runs = {run: cached.get(run, _OfRun(contents[run], nothing)) for run in contents}
        arrays = [of_run.values for of_run in self._runs.values()]
        array = np.stack(arrays) if arrays else np.zeros((0, *nothing.shape))
        return MeasureValues(tuple(contents), query_ids, self._measures, array)

    def _following(self, query_ids: tuple[str, ...], n_measures: int) -> dict[str, _OfRun]:
        """Return kept values with the rows of these queries; rows of new queries are zero."""
        before = {query_id: query_index for query_index, query_id in enumerate(self._tokens)}
        if tuple(before) == query_ids:
            return dict(self._runs)
        old_indices = np.array([before.get(query_id, -1) for query_id in query_ids], np.intp)
        nothing = np.zeros((1, n_measures))
        return {
            name: entry._replace(values=np.vstack([entry.values, nothing])[old_indices])
            for name, entry in self._runs.items()
        }
