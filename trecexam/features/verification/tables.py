"""Verification as tables and as JSON: whole texts, no layout. `verification_text` is what people read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from trecexam.tables.table import Table, Value, to_tsv

if TYPE_CHECKING:
    from trecexam.features.verification.arithmetic import (
        GradedCell,
        GradedItem,
        GridRow,
        Grids,
        ItemReach,
        Missed,
        Missing,
        QueryGrading,
        QueryGrid,
        RelevantPassages,
        Spurious,
        Topic,
    )

GRADING_COLUMNS = (
    "query_id",
    "item_index",
    "item_id",
    "item",
    "doc_id",
    "rating",
    "source",
    "machine",
    "status",
    "probability",
    "judgment",
    "answer",
    "text",
)
MISSING_COLUMNS = (
    "query_id",
    "doc_id",
    "judgment",
    "best_rating",
    "best_items",
    "rated_items",
    "text",
)
COVERAGE_COLUMNS = (
    "query_id",
    "relevant",
    "reached",
    "missed",
    "missed_share",
    "unrated",
    "without_text",
    "outside_pool",
)
SPURIOUS_COLUMNS = (
    "query_id",
    "item_index",
    "item_id",
    "relevant",
    "relevant_reached",
    "relevant_only",
    "nonrelevant",
    "nonrelevant_reached",
    "nonrelevant_only",
    "precision",
    "phi",
    "discrimination",
    "note",
    "item",
)


def grading_table(query: QueryGrading, top: int | None = None) -> Table:
    """A row a cell; of each item, only the first `top`."""
    rows: list[tuple[Value, ...]] = [
        (
            query.topic.query_id,
            graded.index,
            graded.item.item_id,
            graded.item.text,
            cell.doc_id,
            cell.rating,
            cell.source,
            cell.machine,
            cell.status,
            cell.probability,
            cell.judgment,
            cell.answer,
            query.topic.passages[cell.doc_id],
        )
        for graded in query.items
        for cell in graded.cells[:top]
    ]
    return Table(GRADING_COLUMNS, tuple(rows))


def grading_tsv(queries: Iterable[QueryGrading], top: int | None = None) -> Iterator[str]:
    """The header line, then a line a cell, of one query after the other."""
    yield "\t".join(GRADING_COLUMNS)
    for query in queries:
        yield from to_tsv(grading_table(query, top)).splitlines()[1:]


def grading_json(query: QueryGrading, top: int | None = None) -> dict[str, Any]:
    """The query's items with their cells; the passages' texts stand once."""
    shown = {cell.doc_id for graded in query.items for cell in graded.cells[:top]}
    passages = {doc_id: text for doc_id, text in query.topic.passages.items() if doc_id in shown}
    return _topic_json(query.topic) | {
        "items": [_graded_json(graded, top) for graded in query.items],
        "passages": passages,
    }


def grid_table(grids: Grids, top: int | None = None) -> Table:
    """A row a passage; the columns `item.N` are the ratings on the query's N-th item.

    There are as many as the query with the most items needs. `human` says which of them a person rated: item
    indices, and "label" for the passage as a whole, separated by blanks. Of each query, only the first `top`
    rows.
    """
    places = sorted({place for query in grids.queries for place in query.columns})
    rows: list[tuple[Value, ...]] = []
    for query in grids.queries:
        for row in query.rows[:top]:
            cells = (row.ratings[place] if place in query.columns else None for place in places)
            reached = sum((row.ratings[place] or 0) >= grids.min_rating for place in query.columns)
            rows.append(
                (query.topic.query_id, row.doc_id, row.judgment, row.label, reached, _human(row), *cells)
            )
    columns = (
        "query_id",
        "doc_id",
        "judgment",
        "label",
        "reached",
        "human",
        *(f"item.{p + 1}" for p in places),
    )
    return Table(columns, tuple(rows))


def grids_json(grids: Grids, top: int | None = None) -> dict[str, Any]:
    """Every grid with its items; a passage's ratings are in the order of the items."""
    return {"min_rating": grids.min_rating, "queries": [_grid_json(query, top) for query in grids.queries]}


def missing_table(missing: Missing, top: int | None = None) -> Table:
    """A row a missed passage. `best_items` are item indices, separated by blanks."""
    rows: list[tuple[Value, ...]] = [
        (
            topic.query_id,
            missed.doc_id,
            missed.judgment,
            missed.best_rating,
            " ".join(str(place + 1) for place in missed.best_items),
            missed.n_rated,
            topic.passages[missed.doc_id],
        )
        for topic, passages in missing.queries
        for missed in passages.missed[:top]
    ]
    return Table(MISSING_COLUMNS, tuple(rows))


def coverage_table(passages: Iterable[RelevantPassages]) -> Table:
    """A row a query: what became of its relevant passages."""
    rows: list[tuple[Value, ...]] = [
        (
            p.query_id,
            p.relevant,
            p.reached,
            len(p.missed),
            p.missed_share,
            p.unrated,
            p.without_text,
            p.outside,
        )
        for p in passages
    ]
    return Table(COVERAGE_COLUMNS, tuple(rows))


def missing_json(missing: Missing, top: int | None = None) -> dict[str, Any]:
    """Every judged query with its counts and missed passages."""
    return {
        "min_rating": missing.min_rating,
        "min_relevant": missing.min_relevant,
        "unjudged_queries": list(missing.unjudged),
        "queries": [
            _topic_json(topic)
            | dict(zip(COVERAGE_COLUMNS, coverage_table([passages]).rows[0], strict=True))
            | {"passages": [_missed_json(topic, missed) for missed in passages.missed[:top]]}
            for topic, passages in missing.queries
        ],
    }


def spurious_table(spurious: Spurious, top: int | None = None) -> Table:
    """A row an item; only the first `top`."""
    return Table(SPURIOUS_COLUMNS, tuple(map(_reach_row, spurious.items[:top])))


def spurious_json(spurious: Spurious, top: int | None = None) -> dict[str, Any]:
    """The table with full precision, and what it is made with."""
    return {
        "min_rating": spurious.min_rating,
        "min_relevant": spurious.min_relevant,
        "unjudged_queries": list(spurious.unjudged),
        "n_items": len(spurious.items),
        "items": spurious_table(spurious, top).records(),
    }


def _topic_json(topic: Topic) -> dict[str, Any]:
    return {"query_id": topic.query_id, "query": topic.text}


def _graded_json(graded: GradedItem, top: int | None) -> dict[str, Any]:
    item = graded.item
    return {
        "item_index": graded.index,
        "item_id": item.item_id,
        "item": item.text,
        "kind": item.kind,
        "gold_answers": list(item.gold_answers),
        "cells": [_cell_json(cell) for cell in graded.cells[:top]],
    }


def _cell_json(cell: GradedCell) -> dict[str, Any]:
    return {
        "doc_id": cell.doc_id,
        "rating": cell.rating,
        "source": cell.source,
        "machine": cell.machine,
        "status": cell.status,
        "answer": cell.answer,
        "probability": cell.probability,
        "judgment": cell.judgment,
    }


def _grid_json(query: QueryGrid, top: int | None) -> dict[str, Any]:
    items = [(place + 1, query.topic.items[place]) for place in query.columns]
    return _topic_json(query.topic) | {
        "items": [{"item_index": n, "item_id": item.item_id, "item": item.text} for n, item in items],
        "passages": [
            {
                "doc_id": row.doc_id,
                "judgment": row.judgment,
                "label": row.label,
                "human_label": row.human_label,
                "ratings": [row.ratings[place] for place in query.columns],
                "human_items": [place + 1 for place in row.human],
            }
            for row in query.rows[:top]
        ],
    }


def _human(row: GridRow) -> str:
    return " ".join([*(["label"] if row.human_label else []), *(str(place + 1) for place in row.human)])


def _missed_json(topic: Topic, missed: Missed) -> dict[str, Any]:
    return {
        "doc_id": missed.doc_id,
        "judgment": missed.judgment,
        "best_rating": missed.best_rating,
        "best_items": [topic.items[place].item_id for place in missed.best_items],
        "rated_items": missed.n_rated,
        "text": topic.passages[missed.doc_id],
    }


def _reach_row(reach: ItemReach) -> tuple[Value, ...]:
    return (
        reach.query_id,
        reach.index,
        reach.item.item_id,
        reach.relevant,
        reach.relevant_reached,
        reach.relevant_only,
        reach.nonrelevant,
        reach.nonrelevant_reached,
        reach.nonrelevant_only,
        reach.precision,
        reach.phi,
        reach.discrimination,
        reach.note,
        reach.item.text,
    )
