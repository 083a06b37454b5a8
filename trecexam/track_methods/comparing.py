"""How far the grades agree with the official side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError
from trecexam.features.agreement.agreement import Agreements, agreements
from trecexam.features.correlation.comparison import (
    Comparison,
    Outliers,
    SwappedPairs,
    compare,
    outlying,
    swapped,
)
from trecexam.features.correlation.paired_scores import nothing_to_compare
from trecexam.track_methods.opened import Opened, names_of

if TYPE_CHECKING:
    from trecexam.track_methods.opened import MeasureLike


class Comparing(Opened):
    """How far the grades agree with the official side."""

    def correlate(
        self,
        measures: Sequence[MeasureLike] | None = None,
        official_measures: Sequence[MeasureLike] | None = None,
        *,
        min_ratings: Sequence[int] = (),
        per_query: bool = False,
        rbo_p: float | None = None,
    ) -> Comparison | None:
        """Correlations of rubric with official measures; None where there is nothing to compare.

        Args:
            measures, official_measures: None for the track's own.
            min_ratings: each rubric measure at each of these, in place of the track's min_rating.
            per_query: each query by itself.
            rbo_p: the persistence of rank-biased overlap, between 0 and 1; None for 0.9.
        """
        return compare(
            self._loaded(),
            names_of(measures),
            names_of(official_measures),
            min_ratings=min_ratings,
            per_query=per_query,
            rbo_p=rbo_p,
        )

    def swaps(
        self,
        measures: Sequence[MeasureLike] | None = None,
        official_measures: Sequence[MeasureLike] | None = None,
        *,
        min_ratings: Sequence[int] = (),
    ) -> SwappedPairs | None:
        """The pairs of runs that the official side orders otherwise, with tests; None where it has nothing.

        Args:
            measures, official_measures: None for the track's first.
            min_ratings: as in `correlate`.
        """
        return swapped(
            self._loaded(), names_of(measures), names_of(official_measures), min_ratings=min_ratings
        )

    def outliers(
        self,
        measures: Sequence[MeasureLike] | None = None,
        official_measures: Sequence[MeasureLike] | None = None,
        *,
        min_ratings: Sequence[int] = (),
        most: int | None = None,
    ) -> Outliers | None:
        """The runs furthest from the diagonal of both leaderboards, furthest first; arguments as in `swaps`.

        Args:
            most: only so many runs.
        """
        return outlying(
            self._loaded(),
            names_of(measures),
            names_of(official_measures),
            min_ratings=min_ratings,
            most=most,
        )

    def nothing_to_compare(self) -> TrecexamError:
        """Why `correlate`, `swaps` and `outliers` give None, and what to do."""
        return nothing_to_compare(self._loaded())

    def thresholds(self) -> tuple[int, ...]:
        """Every min_rating that the grader's scale has."""
        return tuple(range(1, self._loader.traits.scale.max_rating + 1))

    def agreement(
        self,
        min_ratings: Sequence[int] = (),
        min_answers: Sequence[int] = (),
        min_relevant: int | None = None,
    ) -> Agreements:
        """Label by judgment tables and Cohen's kappa, for every min_rating with every min_answers.

        Args:
            min_ratings, min_answers, min_relevant: in place of the track's settings.

        Raises:
            TrecexamError: the track has no official judgments, or no passage has both labels.
        """
        return agreements(self._loaded(), min_ratings, min_answers, min_relevant)
