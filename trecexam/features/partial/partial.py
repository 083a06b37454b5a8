"""How far the grading of a track is, and in which intervals the runs' values will end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trecexam.line.assessment import Assessment
from trecexam.line.cell_order import (
    ItemPlaces,
    cell_scores,
    is_exact,
    item_places,
    left_out_cells,
    ranks_items,
)
from trecexam.line.derived import DerivedValues
from trecexam.line.evaluation import rubric_values
from trecexam.line.probable_ratings import needing
from trecexam.line.sheets import MISSING
from trecexam.line.value_cache import EvaluatedMeasures
from trecexam.scores.columns.evaluator import supported
from trecexam.scores.measures import measure
from trecexam.scores.missing_ratings import PartlyRated
from trecexam.scores.retrieved import retrieved_weights
from trecexam.tables.table import Table

#: There are no intervals while a smaller share of the cells is graded: with 5% they held the final values of
#: DL 2019 in 46 to 92% of cases, by measure.
LEAST = 0.1
#: Draws of what is missing, and how many cells all of them may have together.
_DRAWS, _FEWEST, _MOST_CELLS = 40, 10, 2_000_000

_Floats = NDArray[np.float64]
_Cells = Mapping[str, NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class PartialStanding:
    """What is known while cells are missing.

    Attributes:
        graded, cells: how many cells have an answer, and of how many that will have one.
        intervals: a row for each run and measure: the value now, what is missing being not relevant, what it
            is expected to be in the end, and its 95% interval; None where too little is graded to say.
        undecided, pairs: how many pairs of runs have intervals by the first measure that overlap, and of how
            many; 0 without intervals.
    """

    graded: int
    cells: int
    intervals: Table | None = None
    undecided: int = 0
    pairs: int = 0

    @property
    def share(self) -> float:
        """The share of the cells that is graded."""
        return self.graded / self.cells if self.cells else 1.0

    def as_json(self) -> dict[str, float]:
        """For manifest.json."""
        return {"graded": self.graded, "cells": self.cells, "share": round(self.share, 4)}

    def lines(self) -> tuple[str, ...]:
        """What the report says may still change."""
        if self.intervals is None:
            return ()
        return (
            f"By what is graded so far, the runs' values will end in the intervals of partial.tsv; those of "
            f"{self.undecided:,} of {self.pairs:,} pairs of runs overlap by the first measure, and may still "
            "change places.",
        )


def partial_standing(track: Assessment, places: ItemPlaces | None = None) -> PartialStanding:
    """How far the grading is, with intervals where the most useful cells, item by item, are graded first.

    What is missing is drawn again and again, see `PartlyRated.draws`. How far such draws are off is found out
    from what is graded: of it the half that comes first in the order predicts the values with all of it, and
    intervals are wider by as much (root mean square over runs) as these values lie outside, if they do.

    Args:
        places: which items are most promising for which passage; None for `item_places`.
    """
    left_out = left_out_cells(track)
    missing = {
        query_id: (sheet.matrix() == MISSING)
        & np.array([text is not None for text in sheet.texts], np.bool_)[:, None]
        & ~left_out.get(query_id, np.False_)
        for query_id, sheet in track.sheets.items()
    }
    n_missing = sum(int(cells.sum()) for cells in missing.values())
    n_cells = track.counts.cells - track.counts.no_text_cells
    n_cells -= sum(int(cells.sum()) for cells in left_out.values())
    standing = PartialStanding(n_cells - n_missing, n_cells)
    stop = track.config.cells.stop
    # What takes probabilities has none of ratings that are drawn.
    uncertain = needing(track, track.measures)
    names = [
        name
        for name in track.measures
        if supported(measure(name))
        and str(measure(name)) not in uncertain
        and (stop is None or is_exact(name, stop))
    ]
    # Where passages stay whole, nothing is known of those that are ranked low: on DL 2019 the intervals of AP
    # held the final values in 23% of cases.
    known = n_missing and any((sheet.codes >= 0).any() for sheet in track.sheets.values())
    if not (ranks_items(track) and known and names and track.runs) or standing.share < LEAST:
        return standing
    drawing = _Drawing(track, item_places(track) if places is None else places, names)
    now = drawing.values({})
    later = drawing.second_half()
    expected, deviation = drawing.moments(later, later)
    off = np.where(deviation > 1e-9, (now - expected) / np.maximum(deviation, 1e-9), 0)
    wider = np.maximum(1, np.sqrt((off**2).mean(axis=0)))
    expected, deviation = drawing.moments({}, missing)
    # Behind it is scipy.
    from scipy.stats import t

    half = float(t.ppf(0.975, drawing.n - 1)) * np.sqrt(1 + 1 / drawing.n) * deviation * wider
    low, high = np.maximum(expected - half, 0), expected + half
    runs = sorted(track.runs)
    rows: tuple[tuple[str | float, ...], ...] = tuple(
        (run, name, *(round(float(each[i, j]), 6) for each in (now, expected, low, high)))
        for i, run in enumerate(runs)
        for j, name in enumerate(names)
    )
    order = np.triu_indices(len(runs), 1)
    overlap = (low[:, 0][:, None] <= high[:, 0]) & (low[:, 0] <= high[:, 0][:, None])
    return replace(
        standing,
        intervals=Table(("run", "measure", "value", "expected", "low", "high"), rows),
        undecided=int(overlap[order].sum()),
        pairs=len(order[0]),
    )


class _Drawing:
    """Values of the runs of a track with ratings that are drawn."""

    def __init__(self, track: Assessment, places: ItemPlaces, names: list[str]) -> None:
        self._track = replace(track, evaluated=EvaluatedMeasures(), kept=DerivedValues())
        self._places = places
        self._names = names
        self._runs = sorted(track.runs)
        self.n = int(np.clip(_MOST_CELLS // max(track.counts.cells, 1), _FEWEST, _DRAWS))

    def second_half(self) -> _Cells:
        """The rated cells that come in the later half of the order: what the first half is to predict."""
        scores = cell_scores(self._track, self._places)
        rated = {query_id: sheet.codes >= 0 for query_id, sheet in self._track.sheets.items()}
        middle = np.median(np.concatenate([scores[query_id][cells] for query_id, cells in rated.items()]))
        return {query_id: cells & (scores[query_id] < middle) for query_id, cells in rated.items()}

    def values(self, changed: Mapping[str, NDArray[np.int8]]) -> _Floats:
        """Means over the queries, shape (runs, measures), where these queries have other codes."""
        sheets = {
            query_id: replace(sheet, codes=changed[query_id]) if query_id in changed else sheet
            for query_id, sheet in self._track.sheets.items()
        }
        values = rubric_values(replace(self._track, sheets=sheets), self._names).of_runs(self._runs)
        return np.asarray(values.array.mean(axis=1))

    def moments(self, hidden: _Cells, drawn: _Cells) -> tuple[_Floats, _Floats]:
        """Mean and standard deviation of the values where these cells are hidden, and these drawn."""
        sheets = {query_id: sheet for query_id, sheet in self._track.sheets.items() if sheet.codes.size}
        width = max(len(sheet.items) for sheet in sheets.values())
        query, items, ratings, missing, weights = [], [], [], [], []
        first_item = 0
        order = {query_id: np.argsort(self._places[query_id], axis=1) for query_id in sheets}
        for number, (query_id, sheet) in enumerate(sheets.items()):
            at, padding = order[query_id], ((0, 0), (0, width - len(sheet.items)))
            codes = np.where(hidden[query_id], MISSING, sheet.codes) if hidden else sheet.codes
            in_order = np.take_along_axis(codes, at, axis=1)
            query.append(np.full(len(codes), number))
            items.append(np.pad(at + first_item, padding))
            ratings.append(np.pad(np.maximum(in_order, MISSING), padding, constant_values=MISSING))
            missing.append(np.pad(np.take_along_axis(drawn[query_id], at, axis=1), padding))
            pooled = self._track.pool[query_id]
            weights.append(retrieved_weights(pooled.ranks, len(pooled.doc_ids)))
            first_item += len(sheet.items)
        parts = PartlyRated(
            np.concatenate(query),
            np.concatenate(items),
            np.concatenate(ratings).astype(np.int8),
            np.concatenate(missing),
            np.concatenate(weights),
            self._track.config.scores.min_rating,
        )
        ends = np.cumsum([len(sheet.doc_ids) for sheet in sheets.values()])[:-1]
        values = []
        for draw in parts.draws(self.n):
            changed = {}
            for (query_id, sheet), of_query in zip(sheets.items(), np.split(draw, ends), strict=True):
                place = self._places[query_id]
                filled = np.take_along_axis(of_query[:, : len(sheet.items)], place, axis=1)
                changed[query_id] = np.where(drawn[query_id], filled, sheet.codes).astype(np.int8)
            values.append(self.values(changed))
        return np.mean(values, axis=0), np.std(values, axis=0, ddof=1)
