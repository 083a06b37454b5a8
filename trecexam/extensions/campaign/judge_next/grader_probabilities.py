"""Stored evidence on a query's cells besides ratings: probabilities, and other graders' ratings."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trecexam.extensions.campaign.judge_next.arithmetic.chances import RATINGS, Opinions
from trecexam.graders.base import identity_json
from trecexam.graders.prompts import published
from trecexam.scores.ratings import MAX_RATING, MISSING, QueryRatings

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment


def grader_probabilities(track: Assessment, queries: Sequence[QueryRatings]) -> Iterator[Opinions]:
    """The evidence on each query's cells, in the order of the queries.

    Args:
        track: a loaded one.
        queries: ratings of the track's queries, with people's in place of the grader's.
    """
    graders = _others(track)
    for q in queries:
        doc_at = {doc_id: index for index, doc_id in enumerate(q.doc_ids)}
        items = track.bank.items[q.query_id]
        item_at = {item.item_id: index for index, item in enumerate(items)}
        stated, _ = track.grades.distributions(track.sheets[q.query_id])
        other_ratings = np.full((len(graders), *q.ratings.shape), MISSING, np.int8)
        rows = track.grade_rows((q.query_id,)) if graders else ()
        for item_id, cells in itertools.groupby(rows, key=lambda row: row["item_id"]):
            of_item = list(cells)
            docs = [doc_at[row["doc_id"]] for row in of_item]
            other_ratings[:, docs, item_at[item_id]] = _ratings(track, graders, of_item)
        query_overrides = track.overrides.queries.get(q.query_id)
        for (doc_id, item_id), rating in (query_overrides.cells if query_overrides else {}).items():
            index = doc_at[doc_id], item_at[item_id]
            stated[index] = np.eye(RATINGS)[rating]
            other_ratings[:, index[0], index[1]] = rating
        yield Opinions(stated, other_ratings)


def _ratings(track: Assessment, graders: Sequence[int], cells: Sequence[Mapping[str, Any]]) -> Any:
    """Each grader's ratings of an item's cells, shape (n_graders, n_cells); -1 without a rating."""
    store = track.grades.store
    item = store.item_ids([bytes.fromhex(cells[0]["item_sha256"])])[0]
    passages = store.passage_ids([bytes.fromhex(row["passage_sha256"]) for row in cells])
    ratings = np.full((len(graders), len(cells)), MISSING, np.int8)
    for grader_index, grader in enumerate(graders):
        if item is None:
            continue
        for grades in store.columns(grader, [item]):
            codes = dict(zip(grades.passage_ids.tolist(), grades.codes.tolist(), strict=True))
            grader_codes = [
                MISSING if passage is None else codes.get(passage, MISSING) for passage in passages
            ]
            ratings[grader_index] = [max(code, MISSING) for code in grader_codes]
    return ratings


def _others(track: Assessment) -> list[int]:
    """Return the other graders with stored grades on the same scale."""
    track_identity, best = identity_json(track.grader.identity), track.traits.scale.max_rating
    other_graders = [
        (row, json.loads(identity))
        for row, identity in track.grades.store.graders()
        if identity != track_identity
    ]
    return [row for row, identity in other_graders if _max_rating(identity) == best]


def _max_rating(identity: Mapping[str, Any]) -> int:
    """The best rating on a grader's scale, if its identity names a published prompt."""
    names = [str(prompt["name"]) for prompt in identity.get("prompts", ())]
    max_ratings = [published()[name].max_rating for name in names if name in published()]
    return max(max_ratings, default=MAX_RATING)
