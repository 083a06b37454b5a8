"""Labels and grades as data frames. Ids are always texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from trecexam.features.exporting.exports import qrels
from trecexam.grades.evaluation import probable_ratings
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.frames import Library, data_frame, texts
from trecexam.scores.expected import gains
from trecexam.scores.labels import LabelRule


def qrels_frame(
    track: GradedTrack,
    *,
    label: LabelRule | None = None,
    min_rating: int | None = None,
    min_answers: int | None = None,
    binary: bool = False,
    library: Library = "pandas",
) -> Any:
    """The Rubric-Qrels as a data frame with a row for each labelled passage and item."""
    rows = list(qrels(track, label=label, min_rating=min_rating, min_answers=min_answers, binary=binary))
    items = [track.sheets[row.query_id].items for row in rows]
    counts = [len(of_query) for of_query in items]
    labels = np.repeat(np.array([row.relevance for row in rows], np.int64), counts)
    columns: dict[str, Any] = {
        "query_id": texts([row.query_id for row in rows for _ in row.ratings]),
        "doc_id": texts([row.doc_id for row in rows for _ in row.ratings]),
        "item_id": texts([item.item_id for of_query in items for item in of_query]),
        "rating": np.array([rating for row in rows for rating in row.ratings], np.int64),
        "label": labels,
        "relevance": labels,
    }
    if (label or track.config.scores.label) == "expected" and not binary:
        answers = track.config.scores.min_answers if min_answers is None else min_answers
        gain = {
            (q.query_id, doc_id): value
            for q in probable_ratings(track)
            for doc_id, value in zip(q.doc_ids, gains(q, answers).tolist(), strict=True)
        }
        columns["gain"] = np.repeat([gain[row.query_id, row.doc_id] for row in rows], counts)
    if track.bank.has_importance:
        columns["importance"] = texts([item.importance for of_query in items for item in of_query])
    if track.bank.has_weights:
        weights = [item.counted_weight for of_query in items for item in of_query]
        columns["weight"] = np.array(weights, np.float64)
    return data_frame(columns, library)


def grades_frame(track: GradedTrack, *, library: Library = "pandas") -> Any:
    """Every grade of the pool as a data frame, a row for each graded passage and item."""
    rows = list(track.grade_rows())

    def words(name: str) -> Any:
        return texts([row.get(name) or "" for row in rows])

    def ratings(name: str) -> Any:
        return np.array([-1 if row.get(name) is None else row[name] for row in rows], np.int64)

    columns = {name: words(name) for name in ("query_id", "doc_id", "item_id")}
    columns |= {name: ratings(name) for name in ("rating", "human_rating")}
    columns |= {name: words(name) for name in ("who", "status", "answer", "model", "prompt")}
    return data_frame(columns, library)
