"""Drops judgments, fills holes with automatic labels, and compares leaderboards with that on all.

Two ways to drop: what a run (or a team) alone brought into the pool, after Zobel, "How Reliable Are the
Results of Large-Scale Information Retrieval Experiments?", SIGIR 1998, and Buckley, Dimmick, Soboroff &
Voorhees, "Bias and the Limits of Pooling for Large Collections", Information Retrieval 10, 2007; and at
random, after Buckley & Voorhees, "Retrieval Evaluation with Incomplete Information", SIGIR 2004.

Only dropped judgments are filled. Holes that the full judgments have stay holes in all three, so that what
differs between filled and full judgments is due to the automatic labels alone. So it is with other ways to
fill, and with condensed lists (Sakai, "Alternatives to Bpref", SIGIR 2007): these lack the passages whose
judgment was dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from ir_measures import Measure
from numpy.typing import NDArray

from converters.records import Qrel
from trecexam.features.fill.records import Labels
from trecexam.features.fill.rules import IDENTITY, ScaleMap, fitted
from trecexam.scores.columns.evaluator import Evaluator
from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.ranked import run_of
from trecexam.scores.values import TIE_DECIMALS

Floats = NDArray[np.float64]
#: (query_id, doc_id)
Place = tuple[str, str]
#: query_id -> doc_ids
Docs = Mapping[str, Collection[str]]
#: Gives official labels for passages whose judgments were dropped, and looks at none of these; passages
#: without a label stay holes. None instead of labels: the passages are left out of the rankings.
Filler = Callable[[Docs], Labels | None]


class Outcome(NamedTuple):
    """Leaderboards after some judgments were dropped.

    Attributes:
        dropped: the passages without their judgment.
        filled: how many of them have an automatic label in its place; the others stay holes.
        rule: the rule that mapped these labels.
        unfitted: why no rule could be fitted and the identity is in; None where one was.
        boards: means of shape (measures, runs): "full" with all judgments, "holes" with those that remain,
            "fill" with the dropped ones filled, and by the other methods.
    """

    dropped: Sequence[Place]
    filled: int
    rule: ScaleMap
    unfitted: str | None
    boards: Mapping[str, Floats]


@dataclass(frozen=True)
class Simulation:
    """Runs, official judgments and automatic labels, to drop judgments from.

    Attributes:
        rankings: run -> query_id -> doc_ids, best first.
        official: the judgments; a run's mean is over all their queries, as in `trec_eval -c`.
        automatic: labels before any mapping. The rule that maps them onto the official scale is fitted anew
            each time, on passages that still have their judgment; it is the identity where there is no fit.
        measures: official measures without subtopics: labels of whole passages cannot fill these.
        pool: the passages that would be filled had they no judgment; None for all.
        fillers: other ways to treat what was dropped, by name.
    """

    rankings: Mapping[str, Mapping[str, Sequence[str]]]
    official: Labels
    automatic: Labels
    measures: Sequence[Measure]
    pool: Docs | None = None
    fillers: Mapping[str, Filler] = field(default_factory=dict)

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the leaderboards after a drop."""
        return ("holes", "fill", *self.fillers)

    @cached_property
    def _full(self) -> Floats:
        return self._evaluated(self.official, {})

    def rule(self, dropped: Sequence[Place] = ()) -> tuple[ScaleMap, str | None]:
        """Return the rule for filling after these are dropped, and the reason if it could not be fitted.

        No judgment of a dropped passage is looked at.
        """
        dropped_set = set(dropped)
        both = [
            (labels[doc_id], label)
            for query_id, judged in self.official.items()
            for labels in [self.automatic.get(query_id, {})]
            for doc_id, label in judged.items()
            if doc_id in labels and (query_id, doc_id) not in dropped_set
        ]
        try:
            return fitted([label for label, _ in both], [human for _, human in both]), None
        except ValueError as error:
            return IDENTITY, str(error)

    def drop(self, dropped: Sequence[Place]) -> Outcome:
        """Return the leaderboards with holes at these judged passages, and with the holes filled."""
        rule, unfitted = self.rule(dropped)
        docs: dict[str, set[str]] = {}
        for query_id, doc_id in dropped:
            docs.setdefault(query_id, set()).add(doc_id)
        automatic = self.fillable(self.automatic, docs)
        mapped = {q: {doc_id: rule(label) for doc_id, label in by.items()} for q, by in automatic.items()}
        labels: dict[str, Labels | None] = {"holes": {}, "fill": mapped}
        labels |= {name: filler(docs) for name, filler in self.fillers.items()}
        values = {"full": self._full} | {name: self._values(docs, by) for name, by in labels.items()}
        n_queries = max(1, len(self.official))
        boards = {name: np.round(v.sum(axis=2) / n_queries, TIE_DECIMALS) for name, v in values.items()}
        return Outcome(dropped, sum(map(len, mapped.values())), rule, unfitted, boards)

    def fillable(self, labels: Labels, dropped: Docs) -> dict[str, dict[str, int]]:
        """Return the labels of those dropped passages that would be filled."""
        return {
            query_id: {
                doc_id: label
                for doc_id, label in labels.get(query_id, {}).items()
                if doc_id in docs and (self.pool is None or doc_id in self.pool.get(query_id, ()))
            }
            for query_id, docs in dropped.items()
        }

    def _values(self, dropped: Docs, labels: Labels | None) -> Floats:
        """Return values of shape (measures, runs, queries) with labels in the place of dropped judgments."""
        new = self.fillable(labels or {}, dropped)
        changed = {
            query_id: {d: label for d, label in judged.items() if d not in dropped[query_id]} | new[query_id]
            for query_id, judged in self.official.items()
            if query_id in dropped
        }
        values = self._full.copy()
        is_changed = np.array([query_id in changed for query_id in self.official], bool)
        values[:, :, is_changed] = self._evaluated(changed, dropped if labels is None else {})
        return values

    def _evaluated(self, labels: Labels, without: Docs) -> Floats:
        """Return values of shape (measures, runs, queries of labels) on rankings without some passages."""
        query_ids = tuple(labels)
        rows = (Qrel(q, doc_id, label) for q in query_ids for doc_id, label in labels[q].items())
        evaluator = Evaluator(self.measures, Judged.from_qrels(rows, query_ids))
        values = np.zeros((len(self.measures), len(self.rankings), len(query_ids)))
        for row, rankings in enumerate(self.rankings.values()):
            ranked = {
                query_id: [doc_id for doc_id in ranking if doc_id not in without.get(query_id, ())]
                for query_id, ranking in rankings.items()
                if query_id in labels
            }
            values[:, row] = evaluator.values(run_of(ranked)).T
        return values
