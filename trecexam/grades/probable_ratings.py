"""Ratings with the probabilities that the grader gave them, for expected labels and ECover."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from ir_measures import Measure

from trecexam.grades.graded_track import GradedTrack
from trecexam.scores.expected import with_probabilities
from trecexam.scores.measures import measure
from trecexam.scores.ratings import QueryRatings


def needing(track: GradedTrack, measures: Iterable[str | Measure]) -> list[str]:
    """Return the measures that look at probabilities of ratings."""
    kinds = {"ECover", "nDCG"} if track.config.scores.label == "expected" else {"ECover"}
    return [str(each) for each in map(measure, measures) if each.NAME in kinds]


def probable_ratings(track: GradedTrack, query_ids: Sequence[str] | None = None) -> Sequence[QueryRatings]:
    """Return the ratings of these queries, or of all of the bank, with `QueryRatings.at_least`.

    A cell that a person rated, and one whose grade has no probabilities, is certain.
    """
    return [_read(track, q)[0] for q in (track.bank.query_ids if query_ids is None else query_ids)]


def without_probabilities(track: GradedTrack, measures: Iterable[str | Measure]) -> Iterator[str]:
    """Yield a note on ratings that are certain, where these measures look at their probabilities."""
    names = needing(track, measures)
    counts = [_read(track, query_id)[1] for query_id in track.bank.query_ids] if names else []
    certain, rated = (sum(of) for of in zip(*counts, strict=True)) if counts else (0, 0)
    if certain:
        yield (
            f"{certain:,} of the grader's {rated:,} ratings have no probabilities, and count as certain in "
            f"{', '.join(names)}"
        )


def _read(track: GradedTrack, query_id: str) -> tuple[QueryRatings, tuple[int, int]]:
    """Return a query's ratings, and (certain ones, all) of the grader.

    The store is read once while the query's cells are the same.
    """
    sheet = track.sheets[query_id]
    if _read not in sheet.memo:
        stated = track.grades.distributions(sheet, read=True)
        graded = sheet.matrix() >= 0
        stated[~graded] = np.nan
        for doc_id, item_id in sheet.overrides.cells if sheet.overrides else ():
            cell = sheet.row_of[doc_id], sheet.column_of[item_id]
            stated[cell], graded[cell] = np.nan, False
        certain = int((graded & np.isnan(stated).any(axis=2)).sum())
        (q,) = track.ratings([query_id])
        sheet.memo[_read] = with_probabilities(q, stated), (certain, int(graded.sum()))
    result: tuple[QueryRatings, tuple[int, int]] = sheet.memo[_read]
    return result
