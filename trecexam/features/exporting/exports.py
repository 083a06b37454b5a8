"""What a track gives to other tools: labels as qrels, subtopics, and every grade."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from trecexam.errors import TrecexamError
from trecexam.features.exporting.facets import facet_ratings
from trecexam.line.loaded import LoadedTrack
from trecexam.scores.labels import label_qrels, subtopic_qrels

if TYPE_CHECKING:
    import pandas

    from converters.records import Qrel
    from trecexam.scores.labels import LabelRule, RubricQrel


def qrels(
    track: LoadedTrack,
    *,
    label: LabelRule | None = None,
    min_rating: int | None = None,
    min_answers: int | None = None,
    binary: bool = False,
    by: Literal["query", "facet"] = "query",
) -> Iterator[RubricQrel]:
    """The Rubric-Qrels as `ir_measures.Qrel`s, which carry the item ratings that Cover needs.

    Args:
        label, min_rating, min_answers: in place of the track's settings.
        binary: labels are 1 where the passage reaches at least `min_answers` items, else 0.
        by: "facet" for labels of each facet, whose query ids are `query/facet`, by its own items; see
            `trecexam.features.exporting.facets`.

    Raises:
        TrecexamError: by facet, and no item has one, or one has white space in it.
        ValueError: an unknown label rule or min_answers below 1, when the first row is asked for.
    """
    scores = track.config.scores
    return label_qrels(
        track.ratings() if by == "query" else facet_ratings(track),
        label or scores.label,
        scores.min_rating if min_rating is None else min_rating,
        scores.min_answers if min_answers is None else min_answers,
        binary=binary,
    )


def qrels_frame(
    track: LoadedTrack,
    *,
    label: LabelRule | None = None,
    min_rating: int | None = None,
    min_answers: int | None = None,
    binary: bool = False,
) -> pandas.DataFrame:
    """The Rubric-Qrels as a pandas data frame with a row for each labelled passage and item.

    All functions of `ir_measures` take it as qrels, and compute Cover and nCover from it, as long as each
    passage has its row for each item: passages and items may be left out whole, single rows may not.

    Args:
        label, min_rating, min_answers, binary: as in `qrels`.

    Returns:
        Columns `query_id`, `doc_id`, `item_id`, `rating` (0..5, -1 where there is none), `label` (the
        passage's), `relevance` (the same, by the name that ir_measures looks for) and, where the bank has
        importances, `importance` (of the item: "vital", "okay" or ""). Items are in the bank's order.

    Raises:
        TrecexamError: pandas is not installed.
        ValueError: as `qrels`.
    """
    try:
        import pandas
    except ImportError:
        raise TrecexamError("a data frame needs pandas: pip install pandas") from None
    rows = list(qrels(track, label=label, min_rating=min_rating, min_answers=min_answers, binary=binary))
    items = [track.sheets[row.query_id].items for row in rows]
    counts = [len(of_query) for of_query in items]
    labels = np.repeat(np.array([row.relevance for row in rows], np.int64), counts)
    columns: dict[str, Any] = {
        "query_id": np.repeat(np.array([row.query_id for row in rows], object), counts),
        "doc_id": np.repeat(np.array([row.doc_id for row in rows], object), counts),
        "item_id": [item.item_id for of_query in items for item in of_query],
        "rating": np.array([rating for row in rows for rating in row.ratings], np.int64),
        "label": labels,
        "relevance": labels,
    }
    if track.bank.has_importance:
        columns["importance"] = [item.importance for of_query in items for item in of_query]
    return pandas.DataFrame(columns)


def subtopics(track: LoadedTrack, *, min_rating: int | None = None) -> Iterator[Qrel]:
    """The diversity qrels: iteration is the item's index, relevance 1 where the passage reaches it.

    Every item of a query is named, also one that no passage is rated on: Cover(rel=1) of these rows is
    Cover(rel=min_rating) of the track.

    Args:
        min_rating: in place of the track's.
    """
    threshold = track.config.scores.min_rating if min_rating is None else min_rating
    return (row for query in track.ratings() for row in subtopic_qrels(query, threshold))


def grades(track: LoadedTrack) -> Iterator[dict[str, Any]]:
    """Every grade of the pool: ids, rating, status, raw answer, digests.

    Where a person rated the cell, `human_rating`, `who` and `why` stand beside the grader's rating.
    """
    return track.grade_rows()
