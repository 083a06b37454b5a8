"""Agreement of assessors on cells that several judged, and their disagreements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np

from converters.overrides import ADJUDICATED
from trecexam.extensions.campaign.alpha import alpha
from trecexam.extensions.campaign.assessments import CellKey, counting, opinions_of
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.result import Result
from trecexam.results.table import Layout, Table, Value
from trecexam.results.text import plural
from trecexam.scores.kappa import MIN_QUERIES, Kappa, kappa, weighted_kappa

#: What the intervals are, in words.
INTERVALS = f"intervals are 95%, over topics, with {MIN_QUERIES} topics or more"
Level = Literal["passage", "item", "citation"]


class Disagreement(NamedTuple):
    """A cell with different ratings.

    Attributes:
        ratings: assessor -> her rating, in the order in which they gave them.
        counts: the rating that counts by the track's rule; None where none does.
        adjudicated: whether somebody decided between them.
    """

    level: Level
    query_id: str
    doc_id: str
    item_id: str
    ratings: Mapping[str, int]
    counts: int | None
    adjudicated: bool

    @property
    def spread(self) -> int:
        """From the lowest rating to the highest."""
        return max(self.ratings.values()) - min(self.ratings.values())


@dataclass(frozen=True)
class AssessorAgreement(Result):
    """Agreement of a track's assessors.

    Attributes:
        rule: whose rating counts, see [judging].
        rows: of the table `agreement`: for each level all together first, then each two.
        disagreements: the widest apart first.
        notes: how much people differ on, and what the intervals are.
    """

    rule: str
    rows: tuple[tuple[Value, ...], ...]
    disagreements: tuple[Disagreement, ...]
    notes: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """The rule for differing ratings, and the kind of intervals."""
        return {"rule": self.rule, "intervals": INTERVALS}

    def _declare(self) -> dict[str, Table]:
        """`agreement`, a row for all who rated and for each pair; `disagreements`, a row per such cell.

        `topics` and `cells` are those that at least two of them rated; on `same` cells all of them agree.
        alpha is Krippendorff's, ordinal; kappa is Cohen's, of two, also with quadratic weights.
        """
        header = (
            *("level", "assessors", "topics", "cells", "same"),
            *("alpha", "alpha.low", "alpha.high", "kappa", "kappa.low", "kappa.high", "weighted_kappa"),
        )
        disagreements = (
            (
                *row[:4],
                ", ".join(f"{name} {rating}" for name, rating in row.ratings.items()),
                row.spread,
                row.counts,
                "yes" if row.adjudicated else "no",
            )
            for row in self.disagreements
        )
        columns = ("level", "query_id", "doc_id", "item_id", "ratings", "spread", "counts", "adjudicated")
        return {
            "agreement": Table(header, self.rows, layout=Layout(("level", "assessors"))),
            "disagreements": Table(columns, tuple(disagreements)),
        }

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        """Both tables, if there are disagreements."""
        return tuple(self.tables.values()) if self.disagreements else (self.table,)


def assessor_agreement(track: GradedTrack) -> AssessorAgreement:
    """Agreement on the cells that at least two people rated, whether planned or not."""
    levels: dict[Level, dict[CellKey, dict[str, int]]] = {"passage": {}, "item": {}, "citation": {}}
    for name, opinions in opinions_of(track).items():
        for key, row in opinions.items():
            if row.rating is not None:
                of_item: Level = "item" if track.asked.citing is None else "citation"
                levels[of_item if key.item_id else "passage"].setdefault(key, {})[name] = row.rating
    rows: list[tuple[Value, ...]] = []
    disagreements: list[Disagreement] = []
    of_cell = counting(track)
    for level, cells in levels.items():
        shared = {key: ratings for key, ratings in cells.items() if len(ratings) > 1}
        if not shared:
            continue
        best = max(max(ratings.values()) for ratings in shared.values())
        if level == "passage" and track.judging_scale is not None:
            best = max(best, track.judging_scale.best)
        names = tuple(sorted({name for ratings in shared.values() for name in ratings}))
        for group in (*([names] if len(names) > 2 else ()), *combinations(names, 2)):
            of_group = {
                key: {name: ratings[name] for name in group if name in ratings}
                for key, ratings in shared.items()
            }
            of_group = {key: ratings for key, ratings in of_group.items() if len(ratings) > 1}
            if of_group:
                rows.append(_row(level, group, of_group, best + 1))
        for key, ratings in shared.items():
            if len(set(ratings.values())) > 1:
                now = of_cell.get((key.query_id, key.doc_id, key.item_id))
                decided = now is not None and now.kind == ADJUDICATED
                rating = None if now is None else now.rating
                disagreements.append(Disagreement(level, *key, ratings, rating, decided))
    disagreements.sort(key=lambda row: (-row.spread, row[:4]))
    told = "no passage is judged by two people; see --overlap of `trecexam judge plan`"
    if rows:
        told = f"people differ on {plural(len(disagreements), 'judgment')}; {INTERVALS}"
    return AssessorAgreement(track.config.judging.rule, tuple(rows), tuple(disagreements), (told,))


def _row(
    level: Level,
    names: tuple[str, ...],
    cells: Mapping[CellKey, Mapping[str, int]],
    n_values: int,
) -> tuple[Value, ...]:
    by_topic: dict[str, list[list[int]]] = {}
    for key, ratings in cells.items():
        by_topic.setdefault(key.query_id, []).append(list(ratings.values()))
    of_two, weighted = Kappa(), float("nan")
    if len(names) == 2:
        counts = np.zeros((len(by_topic), n_values, n_values), np.int64)
        for topic, pairs in enumerate(by_topic.values()):
            for first, second in pairs:
                counts[topic, first, second] += 1
        of_two, weighted = kappa(counts), weighted_kappa(counts.sum(axis=0), 2)
    same = sum(len(set(ratings.values())) == 1 for ratings in cells.values())
    counted = len(by_topic), len(cells), same
    return (level, ", ".join(names), *counted, *alpha(list(by_topic.values()), n_values), *of_two, weighted)
