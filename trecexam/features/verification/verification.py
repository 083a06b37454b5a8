"""What `trecexam verify` shows: gathers grades, texts and judgments; `arithmetic` beside it computes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trecexam.errors import TrecexamError, did_you_mean
from trecexam.features.verification.arithmetic import (
    GradedCell,
    GradedItem,
    Grids,
    Missing,
    Order,
    QueryGrading,
    QueryGrid,
    Spurious,
    Topic,
    best_first,
    grid_rows,
    item_reaches,
    relevant_passages,
    worst_first,
)
from trecexam.line.diagnostics import resolve_min_rating
from trecexam.line.item_values import item_values
from trecexam.line.official import official_judgments
from trecexam.line.relevance import relevance_thresholds
from trecexam.scores.labels import labels
from trecexam.scores.ratings import MISSING, QueryRatings
from trecexam.tables.text import shorten_list

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment

Ids = Collection[str] | None
Judgments = Mapping[str, Mapping[str, int]]


def grading(
    track: Assessment,
    *,
    query_ids: Collection[str] | None = None,
    item_ids: Collection[str] | None = None,
    doc_ids: Collection[str] | None = None,
    statuses: Collection[str] | None = None,
) -> Iterator[QueryGrading]:
    """Every cell with its answer and official judgment, item by item, best rating first.

    What is asked for is checked before the first one is given.

    Args:
        query_ids, item_ids, doc_ids, statuses: only of these; None for all. Queries and items of which
            nothing is left are left out.

    Raises:
        TrecexamError: nothing is graded yet, or an id is not in the track.
    """
    queries = _queries(track, query_ids, item_ids, doc_ids)
    judgments = _known_judgments(track)
    topics = _topics(track, queries)
    without = _without_text(track, topics)

    def graded(q: QueryRatings) -> QueryGrading:
        rows = {
            (row["item_id"], row["doc_id"]): row
            for row in track.grade_rows((q.query_id,))
            if (item_ids is None or row["item_id"] in item_ids)
            and (doc_ids is None or row["doc_id"] in doc_ids)
        }
        judged = judgments.get(q.query_id, {})
        human = _human_cells(track, q.query_id)
        items = []
        for place, item in enumerate(topics[q.query_id].items):
            if item_ids is not None and item.item_id not in item_ids:
                continue
            cells = [
                _cell(
                    doc_id,
                    rating,
                    rows.get((item.item_id, doc_id)),
                    "no_text" if doc_id in without else "missing",
                    judged.get(doc_id),
                    human=(doc_id, item.item_id) in human,
                )
                for doc_id, rating in zip(q.doc_ids, q.ratings[:, place].tolist(), strict=True)
                if doc_ids is None or doc_id in doc_ids
            ]
            kept = best_first(cell for cell in cells if statuses is None or cell.status in statuses)
            if kept:
                items.append(GradedItem(place + 1, item, tuple(kept)))
        return QueryGrading(topics[q.query_id], tuple(items))

    return (shown for q in queries if (shown := graded(q)).items)


def grids(
    track: Assessment,
    *,
    query_ids: Collection[str] | None = None,
    item_ids: Collection[str] | None = None,
    doc_ids: Collection[str] | None = None,
    min_rating: int | None = None,
) -> Grids:
    """The ratings of passages x items for each query, with official judgments and labels.

    Args:
        query_ids, item_ids, doc_ids: only of these; None for all. Labels are over all items.
        min_rating: in place of the track's.

    Raises:
        TrecexamError: nothing is graded yet, an id is not in the track, or a min_rating that no grade can
            reach.
    """
    scores = track.config.scores
    threshold = resolve_min_rating(track, min_rating)
    judgments = _known_judgments(track)
    queries = _queries(track, query_ids, item_ids, doc_ids)
    topics = _topics(track, queries)
    grids = []
    for q in queries:
        topic = topics[q.query_id]
        places = tuple(
            place for place, item in enumerate(topic.items) if item_ids is None or item.item_id in item_ids
        )
        label = labels(q, scores.label, threshold, scores.min_answers)
        human: dict[str, list[int]] = {}
        for place, item in enumerate(topic.items):
            for doc_id, item_id in _human_cells(track, q.query_id):
                if item_id == item.item_id:
                    human.setdefault(doc_id, []).append(place)
        rows = grid_rows(q, judgments.get(q.query_id, {}), label, human)
        kept = tuple(row for row in rows if doc_ids is None or row.doc_id in doc_ids)
        if kept:
            grids.append(QueryGrid(topic, places, kept))
    return Grids(threshold, tuple(grids))


def missing(
    track: Assessment,
    *,
    query_ids: Collection[str] | None = None,
    min_rating: int | None = None,
    min_relevant: int | None = None,
) -> Missing:
    """The officially relevant passages that reach no item, and what became of the other relevant ones.

    Args:
        query_ids: only of these; None for all.
        min_rating, min_relevant: in place of the track's.

    Raises:
        TrecexamError: no official judgments, or none of these queries or of this pool; nothing is graded
            yet; an id is not in the track; a min_rating that no grade can reach.
    """
    threshold, relevant = _thresholds(track, min_rating, min_relevant)
    queries, judgments = _judged(track, query_ids)
    topics = _topics(track, queries)
    without = _without_text(track, topics)
    of_queries = tuple(
        (topics[q.query_id], relevant_passages(q, judgments[q.query_id], without, threshold, relevant))
        for q in queries
        if q.query_id in judgments
    )
    return Missing(threshold, relevant, of_queries, _unjudged(queries, judgments))


def spurious(
    track: Assessment,
    *,
    query_ids: Collection[str] | None = None,
    item_ids: Collection[str] | None = None,
    min_rating: int | None = None,
    min_relevant: int | None = None,
    order: Order = "phi",
) -> Spurious:
    """How well each item tells relevant from non-relevant passages, the worst first.

    Args:
        query_ids, item_ids: only of these; None for all.
        min_rating, min_relevant: in place of the track's.
        order: "phi", "nonrelevant" (how many of these reach it), "precision" or "discrimination".

    Raises:
        TrecexamError: as `verify_missing`.
    """
    threshold, relevant = _thresholds(track, min_rating, min_relevant)
    queries, judgments = _judged(track, query_ids, item_ids)
    bank = track.bank
    known = item_values(track, "discrimination", threshold)
    reaches = [
        replace(reach, discrimination=known.get((q.query_id, reach.item.item_id), math.nan))
        for q in queries
        if q.query_id in judgments
        for reach in item_reaches(q, bank.items[q.query_id], judgments[q.query_id], threshold, relevant)
        if item_ids is None or reach.item.item_id in item_ids
    ]
    ordered = tuple(worst_first(reaches, order))
    return Spurious(threshold, relevant, ordered, _unjudged(queries, judgments))


def judgments_unused(track: Assessment) -> str | None:
    """Why the official judgments that the track has say nothing of its pool; None where they do.

    None also where the track has none.
    """
    if track.official is None and track.folder.qrels() is None:
        return None
    try:
        return official_judgments(track).explain_no_overlap({q.query_id: q.doc_ids for q in track.ratings()})
    except TrecexamError as error:
        return str(error)


def _thresholds(track: Assessment, min_rating: int | None, min_relevant: int | None) -> tuple[int, int]:
    """From which rating and from which judgment on a passage counts."""
    resolve_min_rating(track, min_rating)
    at = relevance_thresholds(track, min_rating, min_relevant)
    return at.min_rating, at.min_relevant


def _known_judgments(track: Assessment) -> Judgments:
    return {} if track.official is None else official_judgments(track).labels


def _judged(
    track: Assessment, query_ids: Ids, item_ids: Ids = None
) -> tuple[Sequence[QueryRatings], Judgments]:
    """The ratings of the queries asked for, and the official judgments, of at least one of them."""
    judged = official_judgments(track)
    queries = _queries(track, query_ids, item_ids)
    reason = judged.explain_no_overlap({q.query_id: q.doc_ids for q in track.ratings()})
    if reason is None and not any(q.query_id in judged.labels for q in queries):
        shown = shorten_list([q.query_id for q in queries], 3, dots=True)
        reason = f"{judged.source}: no official judgments of {shown}"
    if reason is not None:
        raise TrecexamError(reason)
    return queries, judged.labels


def _unjudged(queries: Sequence[QueryRatings], judgments: Judgments) -> tuple[str, ...]:
    return tuple(q.query_id for q in queries if q.query_id not in judgments)


def _queries(
    track: Assessment, query_ids: Ids = None, item_ids: Ids = None, doc_ids: Ids = None
) -> Sequence[QueryRatings]:
    """The ratings of the queries asked for, of those that have the items asked for.

    Raises:
        TrecexamError: nothing is graded yet, or an id is not in the track.
    """
    folder, bank = track.folder, track.bank
    known = bank.query_ids
    _refuse_unknown(query_ids, known, "query", "in the bank", track)
    chosen = [query_id for query_id in known if query_ids is None or query_id in query_ids]
    items = {query_id: [item.item_id for item in bank.items[query_id]] for query_id in chosen}
    in_bank = [item_id for of_query in items.values() for item_id in of_query]
    _refuse_unknown(item_ids, in_bank, "item", "in the bank", track)
    counts = track.counts
    ratings = track.ratings()
    if counts.cells == counts.missing + counts.no_text_cells and not any(q.rated.any() for q in ratings):
        first = "" if track.runs else f"drop runs into {folder.runs}, then "
        raise TrecexamError(
            f"nothing is graded yet: {first}`trecexam watch {folder.root} --once` grades", path=folder.root
        )
    kept = {q for q in chosen if item_ids is None or any(i in item_ids for i in items[q])}
    queries = [q for q in ratings if q.query_id in kept]
    _refuse_unknown(doc_ids, {d for q in queries for d in q.doc_ids}, "passage", "in the pool", track)
    return queries


def _refuse_unknown(ids: Ids, known: Collection[str], what: str, where: str, track: Assessment) -> None:
    for unknown in ids or ():
        if unknown not in known:
            hint = did_you_mean(unknown, known, before="; ")
            raise TrecexamError(f"no {what} '{unknown}' {where}{hint}", path=track.folder.root)


def _topics(track: Assessment, queries: Sequence[QueryRatings]) -> dict[str, Topic]:
    texts = track.texts
    return {
        q.query_id: Topic(
            q.query_id,
            track.query_texts.get(q.query_id, ""),
            track.bank.items[q.query_id],
            {doc_id: texts.get(doc_id) for doc_id in q.doc_ids},
        )
        for q in queries
    }


def _without_text(track: Assessment, topics: Mapping[str, Topic]) -> set[str]:
    """The pooled passages whose text is missing, or too short to be graded."""
    least = track.config.track.min_text
    return {
        doc_id
        for topic in topics.values()
        for doc_id, text in topic.passages.items()
        if text is None or len(text) < least
    }


def _human_cells(track: Assessment, query_id: str) -> Collection[tuple[str, str]]:
    """(doc_id, item_id) of the cells that a person rated in place of the grader."""
    human = track.overrides.queries.get(query_id)
    return () if human is None else human.cells.keys()


def _cell(
    doc_id: str,
    rating: int,
    row: Mapping[str, Any] | None,
    without_row: str,
    judgment: int | None,
    *,
    human: bool,
) -> GradedCell:
    counts = None if rating == MISSING else rating
    source = "" if counts is None else "human" if human else "model"
    if row is None:
        return GradedCell(doc_id, counts, None, without_row, source, "", None, judgment)
    machine, chances = row["rating"], row["probabilities"]
    probability = None if chances is None or machine is None else chances[machine]
    return GradedCell(doc_id, counts, machine, row["status"], source, row["answer"], probability, judgment)
