"""Pairs of runs in opposite orders on both sides, and runs with different ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trecexam.extensions.disagreements.swaps import SIGNIFICANCE, Swaps, find_swaps
from trecexam.extensions.disagreements.tables import outliers_table, pairs_table, swaps_table
from trecexam.features.correlation.paired_scores import (
    Key,
    compared_by,
    comparison_notes,
    key_of,
    paired_scores,
)
from trecexam.line.loaded_track import of_documents
from trecexam.line.measure_names import names_of
from trecexam.line.measures import first_measure_note
from trecexam.scores.rank_correlation.outliers import Outlier, find_outliers
from trecexam.tables.result import Result
from trecexam.tables.table import Table

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment
    from trecexam.line.measure_names import MeasureLike


@dataclass(frozen=True)
class SwappedPairs(Result):
    """Swapped pairs of runs, for each rubric measure with each official one.

    Attributes:
        keys: the names of the parts of each key.
        found: ((rubric measure, official measure[, min_rating]), its swaps).
        notes: what was compared, and how many pairs are swapped.
    """

    keys: tuple[str, ...]
    found: tuple[tuple[Key, Swaps], ...]
    notes: tuple[str, ...]

    def declare(self) -> dict[str, Table]:
        """`swaps`, a row per swapped pair; `pairs`, the number of pairs of each kind."""
        swaps = [(key, swap) for key, swaps in self.found for swap in swaps.swaps]
        return {"swaps": swaps_table(swaps, self.keys), "pairs": pairs_table(self.found, self.keys)}

    @property
    def facts(self) -> dict[str, Any]:
        """The p value below which a difference is significant."""
        return {"significance": SIGNIFICANCE}


@dataclass(frozen=True)
class Outliers(Result):
    """The runs with the largest differences of rank, for each rubric measure with each official one.

    Attributes:
        keys: the names of the parts of each key.
        found: ((rubric measure, official measure[, min_rating]), its runs, furthest first).
        notes: what was compared.
    """

    keys: tuple[str, ...]
    found: tuple[tuple[Key, tuple[Outlier, ...]], ...]
    notes: tuple[str, ...]

    def declare(self) -> dict[str, Table]:
        """One row a run."""
        rows = [(key, outlier) for key, runs in self.found for outlier in runs]
        return {"outliers": outliers_table(rows, self.keys)}


@of_documents
def swaps(
    track: Assessment,
    measures: Sequence[MeasureLike] | None = None,
    official_measures: Sequence[MeasureLike] | None = None,
    *,
    min_ratings: Sequence[int] = (),
    most: int | None = None,
) -> SwappedPairs:
    """Pairs of runs in the opposite order on the official side, with tests.

    Args:
        measures, official_measures: None for the track's first.
        min_ratings: as in `Track.correlate`.
        most: only the pairs of so many runs, the best by the official side; None for all.

    Raises:
        TrecexamError, ValueError: as `Track.correlate`.
    """
    comparisons = paired_scores(
        track, names_of(measures), names_of(official_measures), min_ratings, first=True
    )
    pairs = [
        (key_of(scores, min_ratings), find_swaps(scores.runs, scores.rubric, scores.official, most))
        for scores in comparisons
    ]
    lines = (
        *(first_measure_note(track) if measures is None else ()),
        *comparison_notes(track, comparisons, measures, official_measures),
        *(_summary(key, swaps) for key, swaps in pairs),
    )
    return SwappedPairs(compared_by(min_ratings), tuple(pairs), lines)


@of_documents
def outliers(
    track: Assessment,
    measures: Sequence[MeasureLike] | None = None,
    official_measures: Sequence[MeasureLike] | None = None,
    *,
    min_ratings: Sequence[int] = (),
    most: int | None = None,
) -> Outliers:
    """The runs whose ranks differ most between both leaderboards, largest difference first.

    Args:
        measures, official_measures, min_ratings: as in `Track.correlate.swaps`.
        most: so many runs of each pair of measures; None for all.

    Raises:
        TrecexamError, ValueError: as `Track.correlate`.
    """
    comparisons = paired_scores(
        track, names_of(measures), names_of(official_measures), min_ratings, first=True
    )
    return Outliers(
        compared_by(min_ratings),
        tuple(
            (key_of(scores, min_ratings), find_outliers(scores.runs, scores.rubric, scores.official)[:most])
            for scores in comparisons
        ),
        (
            *(first_measure_note(track) if measures is None else ()),
            *comparison_notes(track, comparisons, measures, official_measures),
        ),
    )


def _summary(key: Key, swaps: Swaps) -> str:
    kinds = swaps.disagreements
    measure, official, *rating = key
    at = f" at min_rating {rating[0]}" if rating and rating[0] is not None else ""
    tests = ", ".join(f"{count:,} {verdict}" for verdict, count in kinds.items())
    untested = len(swaps.swaps) - sum(kinds.values())
    return (
        f"{measure}{at} and {official}: {len(swaps.swaps):,} of {swaps.n_pairs:,} pairs of runs are swapped "
        f"({tests}{f', {untested:,} untested' if untested else ''}), {swaps.n_tied:,} tied on one side"
    )
