"""Suggestions of passages whose judgment by a person helps most."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from ir_measures import Measure

from trecexam.errors import TrecexamError, did_you_mean, quoted
from trecexam.extensions.campaign.judge_next.expected_change import expected_change
from trecexam.features.leaderboard.board import leaderboard
from trecexam.grades.cell_order import retrieved_weights
from trecexam.grades.diagnostics import nothing_graded
from trecexam.grades.graded_track import GradedTrack
from trecexam.inputs.track_graders import MeasureLike, own_measures
from trecexam.results.result import Tables
from trecexam.results.table import Layout, Table
from trecexam.results.terminal import cut
from trecexam.results.text import plural
from trecexam.scores.labels import labels
from trecexam.scores.measures import COVER, DIVERSITY, measure
from trecexam.scores.support import SUPPORT
from trecexam.scores.values import TIE_DECIMALS

#: Measures independent of judgments of passages, and the default for tracks with only such measures.
_NOT_ON_LABELS, _ON_LABELS = COVER | DIVERSITY | {*SUPPORT}, "nDCG@10"
#: Maximum letters of a text in a table.
_TEXT = 60


class Suggestion(NamedTuple):
    """A passage for a person to judge.

    Attributes:
        order: suggestions with a smaller value come first.
        label: the current label; None if missing.
        expected_change: expected change of the difference of two runs, averaged over all pairs of runs.
        runs: number of runs with the passage's text in their pooled ranks.
    """

    order: tuple[float, ...]
    query_id: str
    doc_id: str
    label: int | None
    expected_change: float
    runs: int


def could_change_a_ranking(track: GradedTrack) -> bool:
    """Return True if judgments of passages could change the order of the runs."""
    counts = track.counts
    return track.asked.citing is None and len(track.runs) > 1 and counts.cells > 0 and counts.is_graded


def suggestions(
    track: GradedTrack,
    name: str | None = None,
    query_ids: Collection[str] = (),
    progress: Callable[[int, int], None] | None = None,
    *,
    with_judged: bool = False,
) -> tuple[list[Suggestion], Measure | None, str]:
    """Return the passages to judge, best first, and the measure that ranks the runs, or why there is none.

    Passages are ordered by the expected change of the runs' differences. Ties, such as all passages of a
    track without grades, are ordered by retrieval: queries take turns, and a query's first passage is the one
    that most runs rank high. Of equal texts the first passage is suggested.

    Args:
        name: the measure that ranks the runs; None for the track's first on labels of passages.
        query_ids: only these queries; () for all.
        with_judged: include judged passages.
    """
    metric, why = None if name is None else _measure(track, name), ""
    if len(track.runs) < 2:
        why = "the track has fewer than two runs"
    elif not any(q.rated.any() for q in track.ratings()):
        why = nothing_graded(track) if track.counts.cells else "the track has no test bank"
    metric = None if why else metric or _measure(track)
    for query_id in query_ids:
        if query_id not in track.pool:
            hint = did_you_mean(query_id, track.pool, before="; ")
            raise TrecexamError(f"no query '{query_id}'{hint}", path=track.folder.root)
    chosen = [query_id for query_id in track.pool if not query_ids or query_id in query_ids]
    n_queries = (
        {} if metric is None else {row.run: row.n_queries for row in leaderboard(track, [str(metric)]).rows}
    )
    judged = {} if with_judged else _judged(track)
    listed: list[Suggestion] = []
    for done, query_id in enumerate(chosen, 1):
        listed += _of_query(track, query_id, judged.get(query_id, ()), metric, n_queries)
        if progress:
            progress(done, len(chosen))
    return sorted(listed, key=lambda row: row.order), metric, why


def _of_query(
    track: GradedTrack,
    query_id: str,
    judged: Collection[str],
    metric: Measure | None,
    n_queries: Mapping[str, int],
) -> Iterator[Suggestion]:
    """Yield the suggestions for one query, in the order of retrieval.

    Args:
        judged: doc_ids to leave out, with all passages of the same text.
        n_queries: run -> number of queries of the run's mean.
    """
    pooled = track.pool[query_id]
    q, sheet = track.ratings((query_id,))[0], track.sheets[query_id]
    numbers: dict[str, int] = {}
    # Passages without a text equal no other passage.
    texts = (text or f"\0{doc_id}" for doc_id, text in zip(q.doc_ids, sheet.texts, strict=True))
    alike = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)
    selected = np.zeros(len(alike), np.bool_)
    selected[np.unique(alike, return_index=True)[1]] = True
    is_judged = np.array([doc_id in judged for doc_id in q.doc_ids], np.bool_)
    selected &= ~np.isin(alike, alike[is_judged])
    now, change = np.full(len(alike), -1), np.zeros(len(alike))
    if metric is not None:
        scores = track.config.scores
        average_all = scores.average != "answered"
        now, change = expected_change(
            q,
            alike,
            selected,
            [run.ranking(query_id) for run in track.runs.values()],
            np.array(
                [(average_all or query_id in run) / n_queries[name] for name, run in track.runs.items()]
            ),
            metric,
            partial(labels, rule=scores.label, min_rating=scores.min_rating, min_answers=scores.min_answers),
        )
    ranks = np.where(pooled.ranks >= 0, alike[pooled.ranks], -1)
    weights, number = retrieved_weights(ranks, len(alike))[alike], list(track.pool).index(query_id)
    order = np.argsort(-weights, kind="stable")
    for turn, doc in enumerate(order[selected[order]].tolist()):
        yield Suggestion(
            (-round(float(change[doc]), TIE_DECIMALS), turn, number),
            query_id,
            q.doc_ids[doc],
            None if now[doc] < 0 else int(now[doc]),
            float(change[doc]),
            int((ranks == alike[doc]).any(axis=1).sum()),
        )


def _measure(track: GradedTrack, name: str | None = None) -> Measure:
    """Return the named measure, or the track's first measure on labels of passages."""
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
    people = track.overrides if track.judging_scale is None else track.judgments
    for query_id, of_query in people.queries.items():
        judged.setdefault(query_id, set()).update(of_query.passages)
    return judged


def next_judgments(
    track: GradedTrack,
    measure: MeasureLike | None = None,
    *,
    query_ids: Collection[str] = (),
    top: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Tables:
    """List the unjudged passages whose judgment by a person would change the ranking most, best first."""
    if top is not None and top < 1:
        raise TrecexamError(f"top {top}: give 1 or more, or None for all")
    if track.asked.citing is not None:
        raise TrecexamError(
            f"the grader {track.name} labels citations, and none of them changes a ranking: label them with "
            f"`trecexam serve {quoted(track.folder.root)}`"
        )
    ranked, metric, why = suggestions(track, None if measure is None else str(measure), query_ids, progress)
    candidates = plural(len(ranked), "unjudged passage")
    columns: tuple[str, ...] = ("query_id", "doc_id", "runs")
    facts: dict[str, str | int] = {"candidates": len(ranked)}
    notes = [f"{candidates}, in the order of retrieval: {why}"]
    if metric is not None:
        columns = ("query_id", "doc_id", "label", "expected_change", "runs")
        could_change = sum(row.order[0] < 0 for row in ranked)
        facts |= {"measure": str(metric), "could_change": could_change}
        n_remaining = len(ranked) - could_change
        follow = f"; the other {n_remaining:,} follow in the order of retrieval" if n_remaining else ""
        notes = [f"{could_change:,} of {candidates} could change the ranking by {metric}{follow}"]
        if ungraded := sum(row.label is None for row in ranked[:top]):
            notes.append(f"{plural(ungraded, 'listed passage')} without a grade; `trecexam watch` grades")
    if ranked:
        root, row = quoted(track.folder.root), ranked[0]
        where = [str(track.folder.root), "--query", row.query_id, "--doc", row.doc_id]
        where += ["--grader", track.folder.grader] if track.folder.grader else []
        override = f"trecexam override {shlex.join(where)} --rating N --who NAME --why TEXT"
        notes.append(f"to judge: trecexam serve {root}, or {override}")
    else:
        notes = ["no passage is left to judge"]
    rows = []
    for position, row in enumerate(ranked[:top], 1):
        values = (getattr(row, name) for name in columns)
        rows.append((position, *values, cut(track.texts.get(row.doc_id, ""), _TEXT)))
    layout = Layout(("place", "query_id", "doc_id"), ("label", "text", "expected_change"))
    table = Table(("place", *columns, "text"), tuple(rows), small=("expected_change",), layout=layout)
    return Tables({"judgments": table}, tuple(notes), about=facts)
