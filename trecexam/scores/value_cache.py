"""Values of every run, query and measure, computed again only where runs or labels changed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import filterfalse
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.values import MeasureValues


class Stale(NamedTuple):
    """Runs to evaluate, and on which queries."""

    runs: tuple[str, ...]
    query_ids: tuple[str, ...]


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
        self._contents: Mapping[str, Hashable] = {}
        self._tokens: Mapping[str, Hashable] = {}
        self._values = MeasureValues((), (), (), np.zeros((0, 0, 0)))
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
        known = self._contents if tuple(measures) == self._values.measures else {}
        new = tuple(run for run in contents if run not in known or known[run] != contents[run])
        old = tuple(filterfalse(set(new).__contains__, contents))
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
        row_of, column_of = ({name: at for at, name in enumerate(names)} for names in (contents, tokens))
        array = np.zeros((len(contents), len(tokens), len(measures)))
        kept, evaluated = self._values, self.evaluated
        if tuple(measures) == kept.measures:
            to_row, to_column = map(row_of.get, kept.runs), map(column_of.get, kept.query_ids)
            rows, columns = (
                np.array([(at, to) for at, to in enumerate(each) if to is not None], int).reshape(-1, 2).T
                for each in (to_row, to_column)
            )
            array[np.ix_(rows[1], columns[1])] = kept.array[np.ix_(rows[0], columns[0])]
        for part, arrays in computed:
            to_columns = [column_of[query_id] for query_id in part.query_ids]
            for run, values in zip(part.runs, arrays, strict=True):
                array[row_of[run], to_columns] = values
                evaluated += len(to_columns)
        # Not before: where an evaluation was broken off, all is as it was.
        self._contents, self._tokens, self.evaluated = dict(contents), dict(tokens), evaluated
        self._values = MeasureValues(tuple(contents), tuple(tokens), tuple(measures), array)
        return self._values
