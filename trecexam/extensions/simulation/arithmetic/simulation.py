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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from converters.records import Qrel
from trecexam.features.fill.records import Labels
from trecexam.features.fill.rules import IDENTITY, ScaleMap, fitted
from trecexam.scores.columns.evaluator import Evaluator
from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.ranked import run_of
from trecexam.scores.measures import DIVERSITY, measure
from trecexam.scores.values import TIE_DECIMALS

Floats = NDArray[np.float64]
#: (query_id, doc_id)
Place = tuple[str, str]
#: Gives official labels for passages whose judgments were dropped, query_id -> doc_ids, and looks at none of
#: these; those that it gives none stay holes. None: the passages are left out of the rankings.
Filler = Callable[[Mapping[str, Collection[str]]], Labels] | None


class Outcome(NamedTuple):
    """Leaderboards after some judgments were dropped.

    Attributes:
        filled: how many dropped passages have an automatic label in their judgment's place; the others stay
            holes.
        rule: the rule that mapped these labels.
        unfitted: why no rule could be fitted and the identity is in; None where one was.
        boards: means of shape (measures, runs) by method: "holes" with the judgments that remain, "fill" with
            the dropped ones filled, and the other methods.
    """

    filled: int
    rule: ScaleMap
    unfitted: str | None
    boards: Mapping[str, Floats]


class Simulation:
    """Runs, official judgments and automatic labels, to drop judgments from.

    Args:
        rankings: run -> query_id -> doc_ids, best first.
        official: the judgments; a run's mean is over all their queries, as in `trec_eval -c`.
        automatic: labels before any mapping; those of passages that are not judged are not used. The rule
            that maps them onto the official scale is fitted anew each time, on those passages that still have
            their judgment; it is the identity where there is no fit.
        measures: official measures.
        fillable: query_id -> the passages that would be filled had they no judgment; None for all.
        fillers: other ways to treat what was dropped, by name.

    Raises:
        ValueError: a measure that cannot be computed, or one that needs subtopics, which labels of whole
            passages cannot fill.

    Attributes:
        rankings, official: as given.
        runs: their names, sorted.
        measures: as ir_measures prints them.
        methods: "holes", "fill", and the other ways.
        query_ids: the judged queries, sorted.
        places: the judged passages, sorted.
        replaceable: those of them with an automatic label to replace a dropped judgment.
        full: the runs' means with all judgments; shape (measures, runs).
    """

    def __init__(
        self,
        rankings: Mapping[str, Mapping[str, Sequence[str]]],
        official: Labels,
        automatic: Labels,
        measures: Sequence[str],
        fillable: Mapping[str, Collection[str]] | None = None,
        fillers: Mapping[str, Filler] | None = None,
    ) -> None:
        self._fillable, self._fillers = fillable, fillers or {}
        self.runs = tuple(sorted(rankings))
        parsed = {str(each): each for each in (measure(name, official=True) for name in measures)}
        for name, each in parsed.items():
            if each.NAME in DIVERSITY:
                raise ValueError(
                    f"{name} needs subtopics, and dropped judgments are filled with labels of whole "
                    "passages: use another measure, such as nDCG@10"
                )
        self.measures = tuple(parsed)
        self.methods = ("holes", "fill", *self._fillers)
        self.query_ids = tuple(sorted(official))
        self._column = {query_id: column for column, query_id in enumerate(self.query_ids)}
        self.rankings = rankings
        self.official = official
        self._both = {
            (query_id, doc_id): (automatic[query_id][doc_id], label)
            for query_id, judged in official.items()
            for doc_id, label in judged.items()
            if doc_id in automatic.get(query_id, ())
        }
        self.places = tuple(sorted((q, doc_id) for q, judged in official.items() for doc_id in judged))
        self.replaceable = {passage for passage in self._both if self._is_fillable(*passage)}
        self._values = self._evaluated(official, self.query_ids)
        self.full = _means(self._values)

    def rule(self, dropped: Collection[Place] = ()) -> tuple[ScaleMap, str | None]:
        """Return the rule for filling after these are dropped, and the reason if it could not be fitted.

        No judgment of a dropped passage is looked at.
        """
        dropped_set = set(dropped)
        pairs = [pair for passage, pair in self._both.items() if passage not in dropped_set]
        try:
            return fitted([label for label, _ in pairs], [human for _, human in pairs]), None
        except ValueError as error:
            return IDENTITY, str(error)

    def drop(self, dropped: Collection[Place]) -> Outcome:
        """Return the leaderboards with holes at these judged passages, and with the holes filled."""
        rule, unfitted = self.rule(dropped)
        docs: dict[str, set[str]] = {}
        for query_id, doc_id in dropped:
            docs.setdefault(query_id, set()).add(doc_id)
        new = {
            query_id: {d: rule(self._both[query_id, d][0]) for d in ids if (query_id, d) in self.replaceable}
            for query_id, ids in docs.items()
        }
        boards = {"holes": self._board(docs, {}), "fill": self._board(docs, new)}
        for name, filler in self._fillers.items():
            boards[name] = self._board(docs, filler(docs) if filler else {}, condensed=filler is None)
        return Outcome(sum(map(len, new.values())), rule, unfitted, boards)

    def _is_fillable(self, query_id: str, doc_id: str) -> bool:
        return self._fillable is None or doc_id in self._fillable.get(query_id, ())

    def _board(
        self, dropped: Mapping[str, Collection[str]], labels: Labels, *, condensed: bool = False
    ) -> Floats:
        """Return the means without dropped judgments, and with labels in the place of these.

        Args:
            condensed: rankings are without the passages whose judgment was dropped.
        """
        changed: dict[str, dict[str, int]] = {}
        for query_id, doc_ids in dropped.items():
            new = labels.get(query_id, {})
            remain = {d: label for d, label in self.official[query_id].items() if d not in doc_ids}
            filled = {d: new[d] for d in doc_ids if d in new and self._is_fillable(query_id, d)}
            changed[query_id] = remain | filled
        values, query_ids = self._values.copy(), sorted(changed)
        columns = [self._column[query_id] for query_id in query_ids]
        values[:, :, columns] = self._evaluated(changed, query_ids, dropped if condensed else None)
        return _means(values)

    def _evaluated(
        self, labels: Labels, query_ids: Sequence[str], without: Mapping[str, Collection[str]] | None = None
    ) -> Floats:
        """Return values of shape (measures, runs, queries)."""
        rows = (Qrel(q, doc_id, label) for q in query_ids for doc_id, label in labels[q].items())
        evaluator = Evaluator(map(measure, self.measures), Judged.from_qrels(rows, query_ids))
        values = np.zeros((len(self.measures), len(self.runs), len(query_ids)))
        for row, run in enumerate(self.runs):
            rankings = self.rankings[run]
            if without:
                rankings = {
                    query_id: [doc for doc in rankings.get(query_id, ()) if doc not in without[query_id]]
                    for query_id in query_ids
                }
            values[:, row] = evaluator.values(run_of(rankings)).T
        return values


def _means(values: Floats) -> Floats:
    means = values.mean(axis=2) if values.shape[2] else np.zeros(values.shape[:2])
    return np.asarray(np.round(means, TIE_DECIMALS), np.float64)
