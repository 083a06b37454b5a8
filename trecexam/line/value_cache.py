"""Values of every run, query and measure, computed again only where runs or labels changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from converters.run import Run

#: run -> query_id -> measure -> value
Values = Mapping[str, Mapping[str, Mapping[str, float]]]
Evaluator = Callable[[Mapping[str, Sequence[str]]], Mapping[str, Mapping[str, float]]]


#: Sets of measures beside the track's own whose values are kept.
_OTHERS = 4


class Judgments(Protocol):
    """What `trecexam.scores.evaluate` makes of rubric ratings or of official qrels."""

    def evaluator(self, measures: Sequence[str], query_ids: Sequence[str]) -> Evaluator: ...


class ValueCache:
    """Per-query values of runs under one set of judgments and measures.

    A value depends on the run's ranking for the query and on the query's labels. Both have a token
    here; a value is kept while its tokens are the same.
    """

    def __init__(self) -> None:
        self._measures: tuple[str, ...] = ()
        self._kept: dict[str, dict[str, tuple[Hashable, Mapping[str, float]]]] = {}
        self.evaluated = 0

    def values(
        self,
        runs: Mapping[str, Run],
        contents: Mapping[str, Hashable],
        measures: Sequence[str],
        versions: Mapping[str, Hashable],
        judgments: Callable[[Sequence[str]], Judgments],
    ) -> Values:
        """The values of every run on every query of `versions`.

        Args:
            contents: run -> a token of its file's content.
            versions: query_id -> a token of its labels.
            judgments: makes the judgments of these queries; called for stale queries only.
        """
        if tuple(measures) != self._measures:
            self._measures, self._kept = tuple(measures), {}
        for name in self._kept.keys() - runs.keys():
            del self._kept[name]
        stale: dict[tuple[str, ...], list[str]] = {}
        tokens: dict[str, dict[str, Hashable]] = {}
        for name in runs:
            kept = self._kept.setdefault(name, {})
            tokens[name] = {q: (contents[name], version) for q, version in versions.items()}
            for query_id in kept.keys() - versions.keys():
                del kept[query_id]
            queries = tuple(q for q, token in tokens[name].items() if q not in kept or kept[q][0] != token)
            if queries:
                stale.setdefault(queries, []).append(name)
        for queries, names in stale.items():
            evaluate = judgments(queries).evaluator(measures, queries)
            for name in names:
                rankings = {q: runs[name].ranking(q) for q in queries if q in runs[name]}
                for query_id, values in evaluate(rankings).items():
                    self._kept[name][query_id] = (tokens[name][query_id], values)
                self.evaluated += len(queries)
        return {name: {q: value for q, (_, value) in kept.items()} for name, kept in self._kept.items()}


class EvaluatedMeasures:
    """Values of a track's measures: its own for good, others while they are asked for again and again."""

    def __init__(self) -> None:
        self._own: dict[Hashable, ValueCache] = {}
        self._others: dict[Hashable, ValueCache] = {}

    def own(self, name: Hashable) -> ValueCache:
        """The values of the track's own measures on one kind of judgments."""
        return self._own.setdefault(name, ValueCache())

    def other(self, *key: Hashable) -> ValueCache:
        """The values of other measures; the few that were asked for last are kept."""
        self._others[key] = self._others.pop(key) if key in self._others else ValueCache()
        while len(self._others) > _OTHERS:
            del self._others[next(iter(self._others))]
        return self._others[key]
