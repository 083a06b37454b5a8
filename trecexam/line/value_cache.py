"""Values of every run, query and measure, computed again only where runs or labels changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from converters.run import Run
from trecexam.scores.values import MeasureValues

#: What evaluates runs on some queries, made once for all runs.
P = TypeVar("P")


class _OfRun(NamedTuple):
    content: Hashable
    values: NDArray[np.float64]


class ValueCache:
    """Per-query values of runs under one set of judgments and measures.

    A value depends on the run's ranking for the query and on the query's labels. Both have a token
    here; a value is kept while its tokens are the same.
    """

    def __init__(self) -> None:
        self._measures: tuple[str, ...] = ()
        self._tokens: dict[str, Hashable] = {}
        self._runs: dict[str, _OfRun] = {}
        self.evaluated = 0
        #: Measure -> why its provider failed.
        self.failures: dict[str, str] = {}
        self._on_all: tuple[tuple[tuple[str, Hashable], ...], Any] | None = None

    def values(
        self,
        runs: Mapping[str, Run],
        contents: Mapping[str, Hashable],
        measures: Sequence[str],
        tokens: Mapping[str, Hashable],
        prepare: Callable[[Sequence[str]], P],
        evaluate: Callable[[P, Sequence[Run]], Iterable[NDArray[np.float64]]],
    ) -> MeasureValues:
        """The values of every run on every query of `tokens`.

        Args:
            contents: run -> a token of its file's content.
            measures: as ir_measures prints them.
            tokens: query_id -> a token of its labels.
            prepare: makes what evaluates runs on some queries; called for stale ones only.
            evaluate: gives the values of runs on these queries, each of shape (queries, measures).
        """
        query_ids = tuple(tokens)
        if tuple(measures) != self._measures:
            self._measures, self._runs, self._on_all = tuple(measures), {}, None
        fresh = [q for q in query_ids if q not in self._tokens or self._tokens[q] != tokens[q]]
        cached = {name: entry for name, entry in self._following(query_ids).items() if name in runs}
        new = [name for name in runs if name not in cached or cached[name].content != contents[name]]
        old = [name for name in runs if name not in set(new)]
        for names, stale in ((new, list(query_ids)), (old, fresh)):
            if not names or not stale:
                continue
            prepared = self._prepared(stale, tokens, prepare)
            stale_indices = (
                [row for row, q in enumerate(query_ids) if q in set(stale)] if names is old else None
            )
            for name, values in zip(names, evaluate(prepared, [runs[name] for name in names]), strict=True):
                if stale_indices is not None:
                    values, part = cached[name].values.copy(), values
                    values[stale_indices] = part
                cached[name] = _OfRun(contents[name], values)
                self.evaluated += len(stale)
        for name in new:
            # Without queries there is nothing to evaluate on.
            cached.setdefault(name, _OfRun(contents[name], np.zeros((len(query_ids), len(self._measures)))))
        # Not before: where an evaluation was broken off, all is as it was.
        self._tokens, self._runs = dict(tokens), cached
        arrays = [cached[name].values for name in runs]
        shape = (len(arrays), len(query_ids), len(self._measures))
        array = np.stack(arrays) if arrays else np.zeros(shape)
        return MeasureValues(tuple(runs), query_ids, self._measures, array)

    def _prepared(
        self, stale: Sequence[str], tokens: Mapping[str, Hashable], prepare: Callable[[Sequence[str]], P]
    ) -> P:
        """What evaluates runs on these queries; that on all of them is kept for the next run."""
        if len(stale) < len(tokens):
            return prepare(stale)
        if self._on_all is None or self._on_all[0] != tuple(tokens.items()):
            self._on_all = tuple(tokens.items()), prepare(stale)
        prepared: P = self._on_all[1]
        return prepared

    def _following(self, query_ids: tuple[str, ...]) -> dict[str, _OfRun]:
        """What is kept with the rows of these queries; a new query's are zero until it is evaluated."""
        before = {query_id: query_index for query_index, query_id in enumerate(self._tokens)}
        if tuple(before) == query_ids:
            return dict(self._runs)
        old_indices = np.array([before.get(query_id, -1) for query_id in query_ids], np.intp)
        nothing = np.zeros((1, len(self._measures)))
        return {
            name: entry._replace(values=np.vstack([entry.values, nothing])[old_indices])
            for name, entry in self._runs.items()
        }
