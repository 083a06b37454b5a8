"""The unjudged passages of a track in the order in which a person should judge them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from ir_measures import Measure

from trecexam.errors import TrecexamError, did_you_mean
from trecexam.extensions.campaign.judge_next.expected_change import expected_change
from trecexam.grades.cell_order import retrieved_weights
from trecexam.grades.diagnostics import nothing_graded
from trecexam.grades.evaluation import leaderboard
from trecexam.grades.graded_track import GradedTrack
from trecexam.inputs.track_graders import own_measures
from trecexam.scores.labels import labels
from trecexam.scores.measures import COVER, DIVERSITY, measure
from trecexam.scores.support import SUPPORT
from trecexam.scores.values import TIE_DECIMALS

#: Measures that a judgment of a passage does not change, and the measure for tracks that have only these.
_NOT_ON_LABELS, _ON_LABELS = COVER | DIVERSITY | {*SUPPORT}, "nDCG@10"


@dataclass(frozen=True)
class SuggestedJudgment:
    """A passage for a person to judge.

    Attributes:
        runs: how many runs have the passage's text among their pooled ranks.
        label: the current label; None if missing.
        order: suggestions with a smaller value come first.
        expected_change: expected change of the difference of two runs, averaged over all pairs of runs.
        p_change: the probability that a person's judgment changes the label.
    """

    query_id: str
    doc_id: str
    runs: int
    label: int | None
    query_text: str
    text: str
    order: tuple[float, ...] = ()
    expected_change: float | None = None
    p_change: float | None = None


class Search:
    """Searches query by query, because a query can take seconds.

    Passages are ordered by the expected change of the runs' differences. Passages with an equal change, which
    are all passages of a track without grades, are ordered by retrieval: queries take turns, and the passage
    that most runs rank highest is a query's first. Of equal texts the first passage is suggested.

    Attributes:
        measure: the measure that ranks the runs; "" where no ranking can change.
        why: why no ranking can change; "" where it can.

    Args:
        name: the measure that ranks the runs; None for the track's first on labels of passages.
        with_judged: suggest passages that people judged, too.

    Raises:
        TrecexamError: the measure cannot be computed, or does not use labels of passages.
    """

    def __init__(self, track: GradedTrack, name: str | None = None, *, with_judged: bool = False) -> None:
        self._track = track
        metric = None if name is None else _measure(track, name)
        self.measure, self.why = "", ""
        if len(track.runs) < 2:
            self.why = "the track has fewer than two runs"
        elif not any(q.rated.any() for q in track.ratings()):
            self.why = nothing_graded(track) if track.counts.cells else "the track has no test bank"
        else:
            self._metric = metric or _measure(track)
            self.measure = str(self._metric)
            self._n_queries = {row.run: row.n_queries for row in leaderboard(track, [self.measure]).rows}
        self._judged = {} if with_judged else _judged(track)

    def chosen(self, query_ids: Collection[str] = ()) -> list[str]:
        """Return these queries, or all, in the track's order.

        Raises:
            TrecexamError: the track lacks one.
        """
        for query_id in query_ids:
            if query_id not in self._track.pool:
                hint = did_you_mean(query_id, self._track.pool, before="; ")
                raise TrecexamError(f"no query '{query_id}'{hint}", path=self._track.folder.root)
        return [query_id for query_id in self._track.pool if not query_ids or query_id in query_ids]

    def ranked(
        self, query_ids: Collection[str] = (), progress: Callable[[int, int], None] | None = None
    ) -> list[SuggestedJudgment]:
        """Return the suggestions of these queries, or of all, best first."""
        chosen = self.chosen(query_ids)
        found: list[SuggestedJudgment] = []
        for done, query_id in enumerate(chosen, 1):
            found += self.of_query(query_id)
            if progress:
                progress(done, len(chosen))
        return sorted(found, key=lambda row: row.order)

    def of_query(self, query_id: str) -> Iterator[SuggestedJudgment]:
        """Yield the suggestions for one query, in the order of retrieval."""
        track, pooled = self._track, self._track.pool[query_id]
        q, sheet = track.ratings((query_id,))[0], track.sheets[query_id]
        numbers: dict[str, int] = {}
        # Passages without a text are never equal to others.
        texts = (text or f"\0{doc_id}" for doc_id, text in zip(q.doc_ids, sheet.texts, strict=True))
        alike = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)
        wanted = np.zeros(len(alike), np.bool_)
        wanted[np.unique(alike, return_index=True)[1]] = True
        is_judged = np.array([doc_id in self._judged.get(query_id, ()) for doc_id in q.doc_ids], np.bool_)
        wanted &= ~np.isin(alike, alike[is_judged])
        now, change, p_change = np.full(len(alike), -1), np.zeros(len(alike)), np.zeros(len(alike))
        if self.measure:
            scores = track.config.scores
            average_all = scores.average != "answered"
            now, change, p_change = expected_change(
                q,
                alike,
                wanted,
                [run.ranking(query_id) for run in track.runs.values()],
                np.array(
                    [
                        (average_all or query_id in run) / self._n_queries[name]
                        for name, run in track.runs.items()
                    ]
                ),
                self._metric,
                partial(
                    labels, rule=scores.label, min_rating=scores.min_rating, min_answers=scores.min_answers
                ),
            )
        ranks = np.where(pooled.ranks >= 0, alike[pooled.ranks], -1)
        weights, number = retrieved_weights(ranks, len(alike))[alike], list(track.pool).index(query_id)
        order = np.argsort(-weights, kind="stable")
        for turn, doc in enumerate(order[wanted[order]].tolist()):
            yield SuggestedJudgment(
                query_id,
                q.doc_ids[doc],
                int((ranks == alike[doc]).any(axis=1).sum()),
                None if now[doc] < 0 else int(now[doc]),
                track.query_texts.get(query_id, ""),
                sheet.texts[doc] or "",
                order=(-round(float(change[doc]), TIE_DECIMALS), turn, number),
                expected_change=float(change[doc]) if self.measure else None,
                p_change=float(p_change[doc]) if self.measure else None,
            )


def _measure(track: GradedTrack, name: str | None = None) -> Measure:
    """Return this measure, or the track's first measure on labels of passages."""
    names = own_measures(track.folder, track.measures if name is None else (name,))
    try:
        metrics = [measure(each) for each in names]
    except ValueError as error:
        raise TrecexamError(str(error)) from None
    on_labels = [metric for metric in metrics if metric.NAME not in _NOT_ON_LABELS]
    if name is not None and not on_labels:
        raise TrecexamError(
            f"{metrics[0]} does not use labels of passages, and a judgment of a passage would not change it: "
            f"use P, nDCG or AP"
        )
    return on_labels[0] if on_labels else measure(_ON_LABELS)


def _judged(track: GradedTrack) -> dict[str, set[str]]:
    """Return query_id -> passages with an official judgment or a person's rating of the whole passage."""
    judged = {query_id: set(labels) for query_id, labels in track.inputs.judged.items()}
    for people in (track.overrides, track.judgments):
        for query_id, of_query in people.queries.items():
            judged.setdefault(query_id, set()).update(of_query.passages)
    return judged
