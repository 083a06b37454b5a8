"""Makes the view of a loaded pipeline: computes all that the pages show, so that they only look it up."""

from __future__ import annotations

import hashlib
import math
import pickle
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError
from trecexam.graders.base import identity_digest, scale_of
from trecexam.serving.view import (
    HoleCounts,
    ItemLine,
    JudgedTable,
    PerQuery,
    QueryHead,
    QueryState,
    RunHead,
    Settings,
    View,
)
from trecexam.stages.gradebook import MISSING
from trecexam.stages.organizing import verification
from trecexam.stages.organizing.agreement import agreements_if_any
from trecexam.stages.organizing.holes import ALL, holes_report
from trecexam.stages.organizing.official import Official, official

if TYPE_CHECKING:
    from trecexam.pipeline import Pipeline
    from trecexam.scores.leaderboard import Leaderboard
    from trecexam.scores.ratings import QueryRatings
    from trecexam.scores.verification import ItemReach
    from trecexam.stages.scoring import Values


def gather(pipeline: Pipeline) -> View:
    """The view of a pipeline that was loaded just now; its version is 0.

    Raises:
        TrecexamError, ConversionError: something of it cannot be computed.
    """
    snapshot = pipeline.snapshot
    assert snapshot is not None
    config, folder = pipeline.config, pipeline.folder
    scores = config.scores
    judgments, notes = _official(pipeline)
    states = {q.query_id: _state(pipeline, q, judgments) for q in pipeline.ratings()}
    board = pipeline.leaderboard()
    values = _per_query(pipeline.rubric_values(), board, snapshot.bank.query_ids)
    official_board = official_values = None
    if judgments is not None and config.official_measures():
        try:
            official_board = pipeline.leaderboard(official=True)
            judged = sorted(judgments.labels)
            official_values = _per_query(pipeline.official_values(), official_board, judged)
        except ValueError as error:
            notes = (*notes, f"official measures cannot be computed: {error}")
    judged_table = None if judgments is None else _judged(states, judgments)
    counts = pipeline.gradebook.counts()
    return View(
        version=0,
        root=str(folder.root),
        name=folder.root.resolve().name,
        grader=str(pipeline.grader.identity["grader"]),
        grader_digest=identity_digest(pipeline.grader.identity),
        settings=Settings(
            config.track.depth,
            scores.label,
            scores.min_rating,
            scores.min_answers,
            scores.min_relevant,
            scores.unparsed,
            scale_of(pipeline.grader).max_rating,
        ),
        board=board,
        official_board=official_board,
        values=values,
        official_values=official_values,
        runs={
            name: RunHead(folder.shown(snapshot.run_files[name]), len(run.query_ids))
            for name, run in snapshot.runs.items()
        },
        heads={query_id: _head(state, judgments) for query_id, state in states.items()},
        parts={query_id: pickle.dumps(state, protocol=5) for query_id, state in states.items()},
        counts=counts,
        holes=_holes(pipeline),
        judged=judged_table,
        kappa=None if judged_table is None else _agreement(pipeline),
        items=_items(pipeline, judgments),
        rejected=pipeline.rejected,
        notes=notes,
    )


def token(part: bytes) -> bytes:
    """Equal for two parts exactly when they say the same."""
    return hashlib.sha256(part).digest()


def _official(pipeline: Pipeline) -> tuple[Official | None, tuple[str, ...]]:
    """The official judgments, and what is to be said of them; None where there are none."""
    assert pipeline.snapshot is not None
    if pipeline.snapshot.official is None and pipeline.folder.qrels() is None:
        return None, ()
    try:
        found = official(pipeline)
    except TrecexamError as error:
        return None, (str(error),)
    apart = found.meets({q.query_id: q.doc_ids for q in pipeline.ratings()})
    return found, (*found.cautions(), *((apart,) if apart else ()))


def _state(pipeline: Pipeline, q: QueryRatings, judgments: Official | None) -> QueryState:
    from trecexam.scores.labels import labels

    snapshot, scores = pipeline.snapshot, pipeline.config.scores
    assert snapshot is not None
    query_id = q.query_id
    texts, _ = pipeline.texts_of(q.doc_ids, snapshot)
    without = pipeline.gradebook.without_text(query_id)
    label = labels(q, scores.label, scores.min_rating, scores.min_answers)
    places = {doc_id: place for place, doc_id in enumerate(q.doc_ids)}
    rankings = {
        name: tuple(places[doc_id] for doc_id in run.ranking(query_id, pipeline.config.track.depth))
        for name, run in snapshot.runs.items()
        if query_id in run
    }
    said = pipeline.overrides.queries.get(query_id)
    human = {}
    if said is not None:
        keys = (*said.cells, *((doc_id, "") for doc_id in said.passages))
        human = {key: pipeline.overrides.said[query_id, *key] for key in keys}
    return QueryState(
        query_id,
        snapshot.query_texts.get(query_id, ""),
        snapshot.bank.items[query_id],
        snapshot.bank.retired.get(query_id, ()),
        q.doc_ids,
        tuple(texts.get(doc_id) for doc_id in q.doc_ids),
        tuple(doc_id not in without for doc_id in q.doc_ids),
        q.ratings,
        pipeline.gradebook.codes(query_id),
        tuple(label.get(doc_id) for doc_id in q.doc_ids),
        {} if judgments is None else dict(judgments.labels.get(query_id, {})),
        human,
        rankings,
        {name: snapshot.runs[name].count(query_id) for name in rankings},
    )


def _head(state: QueryState, judgments: Official | None) -> QueryHead:
    pairs = zip(state.doc_ids, state.texts, strict=True)
    lines = (f"{doc_id}\t{' '.join((text or '').split())}" for doc_id, text in pairs)
    gradable = state.codes[list(state.gradable)] if state.doc_ids else state.codes
    return QueryHead(
        state.query_id,
        state.text,
        len(state.items),
        len(state.doc_ids),
        None if judgments is None else sum(doc_id in state.judgments for doc_id in state.doc_ids),
        int((gradable == MISSING).sum()),
        int((state.codes < MISSING).sum()),
        len(state.human),
        "\n".join(lines).casefold().encode(errors="replace"),
    )


def _per_query(values: Values, board: Leaderboard, query_ids: tuple[str, ...] | list[str]) -> PerQuery:
    import numpy as np

    runs = tuple(values)
    found = np.array(
        [[[values[run][q][name] for name in board.measures] for q in query_ids] for run in runs], dtype=float
    )
    shape = len(runs), len(query_ids), len(board.measures)
    return PerQuery(runs, tuple(query_ids), board.measures, found.reshape(shape))


def _holes(pipeline: Pipeline) -> HoleCounts:
    import numpy as np

    report = holes_report(pipeline)
    assert pipeline.snapshot is not None
    runs, queries = list(pipeline.snapshot.runs), pipeline.snapshot.bank.query_ids
    run_at = {run: place for place, run in enumerate(runs)}
    query_at = {query_id: place for place, query_id in enumerate(queries)}
    found = np.zeros((3, len(runs), len(queries)), np.int32)
    judged = True
    for row in report.rows:
        # Of a query that is called "all" nothing can be told from the sums' rows but by their place.
        if row.query_id in query_at and not (row.query_id == ALL and len(report.rows) != found[0].size):
            judged = judged and row.holes.unjudged is not None
            at = run_at[row.run], query_at[row.query_id]
            found[(slice(None), *at)] = row.holes.retrieved, row.holes.unjudged or 0, row.holes.ungraded
    return HoleCounts(
        pipeline.config.track.depth, found[0], found[1] if judged and runs else None, found[2], report.said()
    )


def _judged(states: Mapping[str, QueryState], judgments: Official) -> JudgedTable | None:
    import numpy as np

    rows: list[tuple[int, int, int, int, int]] = []
    for number, state in enumerate(states.values()):
        runs = np.zeros(len(state.doc_ids), np.int32)
        for ranking in state.rankings.values():
            runs[list(ranking)] += 1
        judged = judgments.judged.get(state.query_id, {})
        rows += (
            (number, place, label, judged[doc_id], int(runs[place]))
            for place, (doc_id, label) in enumerate(zip(state.doc_ids, state.labels, strict=True))
            if label is not None and doc_id in judged
        )
    if not rows:
        return None
    return JudgedTable(*np.array(rows, np.int32).T)


def _agreement(pipeline: Pipeline) -> tuple[float, float, float] | None:
    """Kappa with its interval, of the grader's own labels, relevant or not; None where there is none."""
    try:
        found = agreements_if_any(pipeline)
    except (TrecexamError, ValueError):
        return None
    if found is None:
        return None
    kappa = found.found[0].binary.kappa
    return None if math.isnan(kappa.value) else (kappa.value, kappa.low, kappa.high)


def _items(pipeline: Pipeline, judgments: Official | None) -> tuple[ItemLine, ...] | None:
    if judgments is None:
        return None
    try:
        found = verification.spurious(pipeline)
    except TrecexamError:
        # Nothing graded, or nothing in common: the notes, or the counts, say so.
        return None
    return tuple(_lines(found.items))


def _lines(items: Iterable[ItemReach]) -> Iterator[ItemLine]:
    for one in items:
        yield ItemLine(
            one.query_id,
            one.index,
            one.item.item_id,
            one.item.text,
            one.relevant,
            one.relevant_reached,
            one.nonrelevant,
            one.nonrelevant_reached,
            one.phi,
            one.note,
        )
