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

#: Text columns of a grade beside the ids.
_TEXTS = ("who", "status", "answer", "model", "prompt")


def qrels_frame(
    track: GradedTrack,
    *,
    label: LabelRule | None = None,
    min_rating: int | None = None,
    min_answers: int | None = None,
    binary: bool = False,
    library: Library = "pandas",
) -> Any:
    """Return the Rubric-Qrels as a data frame with a row for each labelled passage and item."""
    rows = qrels(track, label=label, min_rating=min_rating, min_answers=min_answers, binary=binary)
    cells = [
        (row, item, rating)
        for row in rows
        for item, rating in zip(track.sheets[row.query_id].items, row.ratings, strict=True)
    ]
    labels = np.array([row.relevance for row, _, _ in cells], np.int64)
    columns: dict[str, Any] = {
        "query_id": texts([row.query_id for row, _, _ in cells]),
        "doc_id": texts([row.doc_id for row, _, _ in cells]),
        "item_id": texts([item.item_id for _, item, _ in cells]),
        "rating": np.array([rating for _, _, rating in cells], np.int64),
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
        columns["gain"] = np.array([gain[row.query_id, row.doc_id] for row, _, _ in cells], np.float64)
    if track.bank.has_importance:
        columns["importance"] = texts([item.importance for _, item, _ in cells])
    if track.bank.has_weights:
        columns["weight"] = np.array([item.counted_weight for _, item, _ in cells], np.float64)
    return data_frame(columns, library)


def grades_frame(track: GradedTrack, *, library: Library = "pandas") -> Any:
    """Return every grade of the pool as a data frame, a row for each graded passage and item."""
    rows = list(track.grade_rows())
    columns: dict[str, Any] = {}
    for name in ("query_id", "doc_id", "item_id", "rating", "human_rating", *_TEXTS):
        values = [row.get(name) for row in rows]
        if name in ("rating", "human_rating"):
            columns[name] = np.array([-1 if rating is None else rating for rating in values], np.int64)
        else:
            columns[name] = texts([text or "" for text in values])
    return data_frame(columns, library)
