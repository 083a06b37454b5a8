"""How far the rubric leaderboard agrees with the official one: gathers values, calls the statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trecexam.features.correlation.paired_scores import (
    PairedScores,
    common_queries,
    comparison_notes,
    nothing_to_compare,
    paired_scores,
    without_interval,
)
from trecexam.features.correlation.tables import correlation_table, outliers_table, pairs_table, swaps_table
from trecexam.line.loaded_track import of_documents
from trecexam.line.measure_names import names_of
from trecexam.line.official import LEADERBOARD
from trecexam.scores.correlation import Correlation, correlate, per_query_correlations
from trecexam.scores.leaderboard import NOBODY
from trecexam.scores.rank_correlation.outliers import Outlier, find_outliers
from trecexam.scores.rank_correlation.rbo import DEFAULT_P
from trecexam.scores.rank_correlation.resampling import QueryDraws
from trecexam.scores.rank_correlation.swaps import SIGNIFICANCE, Swaps, find_swaps
from trecexam.tables.result import Result
from trecexam.tables.table import Table, Value

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment
    from trecexam.line.measure_names import MeasureLike

Key = tuple[Value, ...]


@dataclass(frozen=True)
class LeaderboardComparison(Result):
    """Correlations of every rubric measure with every official one, a row a pair.

    Attributes:
        n_queries: queries that both sides have; official values are over these.
        keys: the names of the parts of each pair's key.
        pairs: ((rubric measure, official measure[, min_rating][, query_id]), its correlation).
        rbo_p: the persistence of rank-biased overlap.
        notes: what was compared, and what was not and why.
        human_ratings: how many grades people gave, and who.
    """

    n_queries: int
    keys: tuple[str, ...]
    pairs: tuple[tuple[Key, Correlation], ...]
    rbo_p: float
    notes: tuple[str, ...]
    human_ratings: Mapping[str, Any] = field(default_factory=lambda: NOBODY)

    def declare(self) -> dict[str, Table]:
        """One row a pair."""
        return {"correlations": correlation_table(self.pairs, self.keys)}

    @property
    def facts(self) -> dict[str, Any]:
        """How many queries, RBO's p, and how much of the grades people gave."""
        human = dict(self.human_ratings)
        return {"n_queries": self.n_queries, "rbo_p": self.rbo_p, "human_ratings": human}


@dataclass(frozen=True)
class SwappedPairs(Result):
    """The pairs of runs in opposite orders, of every rubric measure with every official one.

    Attributes:
        keys: the names of the parts of each key.
        found: ((rubric measure, official measure[, min_rating]), its swaps).
        notes: what was compared, and how many pairs are swapped.
    """

    keys: tuple[str, ...]
    found: tuple[tuple[Key, Swaps], ...]
    notes: tuple[str, ...]

    def declare(self) -> dict[str, Table]:
        """`swaps`, one row a swapped pair; `pairs`, how many pairs of runs are of each kind."""
        swaps = [(key, swap) for key, swaps in self.found for swap in swaps.swaps]
        return {"swaps": swaps_table(swaps, self.keys), "pairs": pairs_table(self.found, self.keys)}

    @property
    def facts(self) -> dict[str, Any]:
        """From which p value a difference is significant."""
        return {"significance": SIGNIFICANCE}


@dataclass(frozen=True)
class Outliers(Result):
    """The runs furthest from the diagonal, of every rubric measure with every official one.

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


def compare(
    track: Assessment,
    measures: Sequence[MeasureLike] | None = None,
    official_measures: Sequence[MeasureLike] | None = None,
    *,
    min_ratings: Sequence[int] = (),
    per_query: bool = False,
    rbo_p: float | None = None,
) -> LeaderboardComparison:
    """Correlations of rubric with official measures, over the runs and queries that both sides have.

    Args:
        measures: None for the track's own.
        official_measures: None for the track's own and, where there is one, the official leaderboard; its
            name among them is `official_leaderboard`.
        min_ratings: each rubric measure at each of these, in place of the track's min_rating.
        per_query: each query by itself, without intervals; an official leaderboard has none.
        rbo_p: the persistence of rank-biased overlap, between 0 and 1; None for 0.9.

    Raises:
        NothingToCompareError: there is no official side, or no run or query that both sides have.
        TrecexamError: a min_rating is not on the grader's scale, or there is no official leaderboard and it
            is asked for.
        ValueError: a measure cannot be computed.
    """
    p = DEFAULT_P if rbo_p is None else rbo_p
    comparisons = paired_scores(track, names_of(measures), names_of(official_measures), min_ratings)
    if per_query:
        comparisons = tuple(scores for scores in comparisons if scores.official_measure != LEADERBOARD)
        if not comparisons:
            raise nothing_to_compare(track)
    pairs: list[tuple[Key, Correlation]] = []
    draws = QueryDraws()
    for scores in comparisons:
        key = _key(scores, min_ratings)
        if per_query:
            each = per_query_correlations(scores.rubric, scores.official, rbo_p=p)
            pairs += [((*key, query), value) for query, value in zip(scores.query_ids, each, strict=True)]
        else:
            pairs.append((key, correlate(scores.rubric, scores.official, rbo_p=p, draws=draws)))
    keys = (*_keys(min_ratings), "query_id") if per_query else _keys(min_ratings)
    judged = track.official is not None
    n_queries = len(common_queries(track) if judged else track.bank.query_ids)
    lines = comparison_notes(track, comparisons, measures, official_measures)
    without = () if per_query else without_interval(comparisons)
    human = track.override_summary()
    return LeaderboardComparison(n_queries, keys, tuple(pairs), p, (*lines, *without), human)


@of_documents
def swapped(
    track: Assessment,
    measures: Sequence[MeasureLike] | None = None,
    official_measures: Sequence[MeasureLike] | None = None,
    *,
    min_ratings: Sequence[int] = (),
    most: int | None = None,
) -> SwappedPairs:
    """The pairs of runs that the official side orders otherwise, with tests.

    Args:
        measures, official_measures: None for the track's first.
        min_ratings: as in `Track.correlate`.
        most: only the pairs of so many runs, the best by the official side; None for all.

    Raises:
        TrecexamError, ValueError: as `Track.correlate`.
    """
    compared, notes = _compared(track, measures, official_measures, min_ratings)
    pairs = tuple((key, find_swaps(of.runs, of.rubric, of.official, most)) for key, of in compared)
    return SwappedPairs(_keys(min_ratings), pairs, (*notes, *(_summary(*each) for each in pairs)))


@of_documents
def outlying(
    track: Assessment,
    measures: Sequence[MeasureLike] | None = None,
    official_measures: Sequence[MeasureLike] | None = None,
    *,
    min_ratings: Sequence[int] = (),
    most: int | None = None,
) -> Outliers:
    """The runs furthest from the diagonal of both leaderboards, furthest first.

    Args:
        measures, official_measures, min_ratings: as in `Track.correlate.swaps`.
        most: so many runs of each pair of measures; None for all.

    Raises:
        TrecexamError, ValueError: as `Track.correlate`.
    """
    compared, notes = _compared(track, measures, official_measures, min_ratings)
    found = tuple((key, find_outliers(of.runs, of.rubric, of.official)[:most]) for key, of in compared)
    return Outliers(_keys(min_ratings), found, notes)


def _compared(
    track: Assessment,
    measures: Sequence[MeasureLike] | None,
    official_measures: Sequence[MeasureLike] | None,
    min_ratings: Sequence[int],
) -> tuple[list[tuple[Key, PairedScores]], tuple[str, ...]]:
    """What is compared by its key, and what was; the track's first measures where none are given."""
    names = names_of(measures), names_of(official_measures)
    compared = paired_scores(track, *names, min_ratings, first=True)
    notes = comparison_notes(track, compared, measures, official_measures)
    return [(_key(scores, min_ratings), scores) for scores in compared], notes


def _keys(min_ratings: Sequence[int]) -> tuple[str, ...]:
    return ("measure", "official_measure", "min_rating") if min_ratings else ("measure", "official_measure")


def _key(scores: PairedScores, min_ratings: Sequence[int]) -> Key:
    names = scores.measure, scores.official_measure
    return (*names, scores.min_rating) if min_ratings else names


def _summary(key: Key, swaps: Swaps) -> str:
    kinds = swaps.disagreements
    measure, official, *rating = key
    at = f" at min_rating {rating[0]}" if rating and rating[0] is not None else ""
    tests = ", ".join(f"{count:,} {verdict}" for verdict, count in kinds.items())
    untested = len(swaps.swaps) - sum(kinds.values())
    return (
        f"{measure}{at} and {official}: {len(swaps.swaps):,} of {swaps.n_pairs:,} pairs of runs are swapped "
        f"({tests}{f', {untested:,} untested' if untested else ''}), {swaps.n_tied:,} tied on a side"
    )
