"""Agreement of assessors on cells that several judged, and their disagreements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from converters.overrides import ADJUDICATED
from trecexam.extensions.campaign.alpha import alpha
from trecexam.extensions.campaign.assessments import CellKey, counting, opinions_of
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.result import Tables
from trecexam.results.table import Layout, Table, Value
from trecexam.results.text import plural
from trecexam.scores.kappa import MIN_QUERIES, Kappa, kappa, weighted_kappa
from trecexam.scores.ratings import MAX_RATING

#: Description of the intervals.
INTERVALS = f"intervals are 95%, over topics, with {MIN_QUERIES} topics or more"
_RATINGS = MAX_RATING + 1


class Disagreement(NamedTuple):
    """A cell with different ratings.

    Attributes:
        ratings: assessor -> rating, in order of time.
        spread: highest rating minus lowest rating.
        counts: the rating that counts by the track's rule, or None.
        adjudicated: True if a person decided between the assessors.
    """

    level: str
    query_id: str
    doc_id: str
    item_id: str
    ratings: Mapping[str, int]
    spread: int
    counts: int | None
    adjudicated: bool


def assessor_agreement(track: GradedTrack) -> Tables:
    """Return the agreement on the cells that at least two people rated, whether planned or not.

    `agreement` has a row for all assessors and for each pair; `topics` and `cells` count those rated by two
    or more, `same` the cells with equal ratings. alpha is Krippendorff's, ordinal; kappa is Cohen's for
    pairs.
    """
    rows: list[tuple[Value, ...]] = []
    for level, cells in _shared(track).items():
        names = tuple(sorted({name for ratings in cells.values() for name in ratings}))
        for group in (*([names] if len(names) > 2 else ()), *combinations(names, 2)):
            by_topic: dict[str, list[list[int]]] = {}
            for key, ratings in cells.items():
                of_group = [ratings[name] for name in group if name in ratings]
                if len(of_group) > 1:
                    by_topic.setdefault(key.query_id, []).append(of_group)
            if by_topic:
                rows.append(_row(level, group, [*by_topic.values()]))
    differences = disagreements(track)
    header = (
        *("level", "assessors", "topics", "cells", "same"),
        *("alpha", "alpha.low", "alpha.high", "kappa", "kappa.low", "kappa.high", "weighted_kappa"),
    )
    differing: list[tuple[Value, ...]] = []
    for row in differences:
        in_words = ", ".join(f"{name} {rating}" for name, rating in row.ratings.items())
        decided = "yes" if row.adjudicated else "no"
        differing.append((*row[:4], in_words, row.spread, row.counts, decided))
    note = "no passage is judged by two people; see --overlap of `trecexam judge plan`"
    if rows:
        note = f"people differ on {plural(len(differences), 'judgment')}; {INTERVALS}"
    tables = {
        "agreement": Table(header, tuple(rows), layout=Layout(("level", "assessors"))),
        "disagreements": Table(Disagreement._fields, tuple(differing)),
    }
    return Tables(tables, (note,), about={"rule": track.config.judging.rule, "intervals": INTERVALS})


def disagreements(track: GradedTrack) -> list[Disagreement]:
    """Return the cells with different ratings, largest spread first."""
    of_cell = counting(track)
    differences = []
    for level, cells in _shared(track).items():
        for key, ratings in cells.items():
            if len(set(ratings.values())) > 1:
                now = of_cell.get(key)
                decided = now is not None and now.kind == ADJUDICATED
                spread = max(ratings.values()) - min(ratings.values())
                differences.append(Disagreement(level, *key, ratings, spread, now and now.rating, decided))
    return sorted(differences, key=lambda row: (-row.spread, row[:4]))


def _shared(track: GradedTrack) -> dict[str, dict[CellKey, dict[str, int]]]:
    """Return level -> cell -> assessor -> rating, for cells with two ratings or more."""
    of_item = "item" if track.asked.citing is None else "citation"
    cells: dict[CellKey, dict[str, int]] = {}
    for name, opinions in opinions_of(track).items():
        for key, row in opinions.items():
            if row.rating is not None:
                cells.setdefault(key, {})[name] = row.rating
    levels: dict[str, dict[CellKey, dict[str, int]]] = {"passage": {}, of_item: {}}
    for key, ratings in cells.items():
        if len(ratings) > 1:
            levels[of_item if key.item_id else "passage"][key] = ratings
    return levels


def _row(level: str, names: Sequence[str], topics: Sequence[Sequence[Sequence[int]]]) -> tuple[Value, ...]:
    """Return a row of `agreement`, from the ratings of each topic's cells."""
    cells = [ratings for of_topic in topics for ratings in of_topic]
    of_two, weighted = Kappa(), float("nan")
    if len(names) == 2:
        counts = np.zeros((len(topics), _RATINGS, _RATINGS), np.int64)
        for topic, of_topic in enumerate(topics):
            for first, second in of_topic:
                counts[topic, first, second] += 1
        of_two, weighted = kappa(counts), weighted_kappa(counts.sum(axis=0), 2)
    same = sum(len(set(ratings)) == 1 for ratings in cells)
    agreed = (*alpha(topics, _RATINGS), *of_two, weighted)
    return (level, ", ".join(names), len(topics), len(cells), same, *agreed)
