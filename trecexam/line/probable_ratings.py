"""Ratings with the probabilities that the grader gave them, for expected labels and ECover."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from ir_measures import Measure

from trecexam.line.sheets import Sheet
from trecexam.scores.expected import with_probabilities
from trecexam.scores.measures import measure
from trecexam.scores.ratings import QueryRatings

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment


def needing(track: Assessment, measures: Iterable[str | Measure]) -> list[str]:
    """Those of these measures that look at probabilities of ratings."""
    kinds = {"ECover", "nDCG"} if track.config.scores.label == "expected" else {"ECover"}
    return [str(each) for each in map(measure, measures) if each.NAME in kinds]


def probable_ratings(track: Assessment, query_ids: Sequence[str] | None = None) -> Sequence[QueryRatings]:
    """The ratings of these queries, or of all of the bank, with `QueryRatings.at_least`.

    A cell that a person rated, and one whose grade has no probabilities, is certain. The store is read for
    them, and what was read is kept while the query's cells are the same.
    """
    return [_of_query(track, q)[0] for q in (track.bank.query_ids if query_ids is None else query_ids)]


def without_probabilities(track: Assessment, measures: Iterable[str | Measure]) -> tuple[str, ...]:
    """A line on ratings of the grader that are certain, where these measures look at their probabilities."""
    names = needing(track, measures)
    counts = [_of_query(track, query_id)[1] for query_id in track.bank.query_ids] if names else []
    certain, unusable, rated = (sum(of) for of in zip(*counts, strict=True)) if counts else (0, 0, 0)
    if not certain:
        return ()
    odd = f" ({unusable:,} have stored numbers that cannot be probabilities)" if unusable else ""
    return (
        f"{certain:,} of the grader's {rated:,} ratings have no probabilities{odd}, and count as certain in "
        f"{', '.join(names)}",
    )


def _of_query(track: Assessment, query_id: str) -> tuple[QueryRatings, tuple[int, int, int]]:
    """Its ratings; how many of the grader's are certain, for how many of these something else is stored, and
    how many there are.
    """
    sheet = track.sheets[query_id]
    if _read not in sheet.memo:
        sheet.memo[_read] = _read(track, sheet)
    result: tuple[QueryRatings, tuple[int, int, int]] = sheet.memo[_read]
    return result


def _read(track: Assessment, sheet: Sheet) -> tuple[QueryRatings, tuple[int, int, int]]:
    (q,) = track.ratings([sheet.query_id])
    stated, unusable = track.grades.distributions(sheet, read=True)
    graded = sheet.matrix() >= 0
    stated[~graded] = np.nan
    columns = {item.item_id: column for column, item in enumerate(sheet.items)}
    for doc_id, item_id in sheet.overrides.cells if sheet.overrides else ():
        cell = sheet.row_of[doc_id], columns[item_id]
        stated[cell], graded[cell] = np.nan, False
    unknown = np.isnan(stated).any(axis=2)
    return with_probabilities(q, stated), (
        int((graded & unknown).sum()),
        unusable,
        int(graded.sum()),
    )
