"""How far the rubric leaderboard agrees with the official one: gathers values, calls the statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from trecexam.features.correlation.paired_scores import (
    OVER_TWO_RUNS,
    Key,
    PairedScores,
    common_queries,
    compared_by,
    comparison_notes,
    key_of,
    nothing_to_compare,
    paired_scores,
    without_interval,
)
from trecexam.features.correlation.tables import correlation_table
from trecexam.line.assessment import Assessment
from trecexam.line.measure_names import Measures, listed, names_of
from trecexam.line.official_leaderboard import of_leaderboard
from trecexam.line.track_graders import own_measures
from trecexam.scores.correlation import Correlation, correlate, per_query_correlations
from trecexam.scores.leaderboard import NOBODY
from trecexam.scores.rank_correlation.ranks import find_outliers
from trecexam.scores.rank_correlation.resampling import QueryDraws
from trecexam.scores.rank_correlation.tau import DEFAULT_P
from trecexam.tables.result import Result
from trecexam.tables.table import Table
from trecexam.tables.text import plural

#: Runs that the note on swapped pairs names.
MOST_NAMED = 3


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
        rejected: the graders that it cannot show.
    """

    n_queries: int
    keys: tuple[str, ...]
    pairs: tuple[tuple[Key, Correlation], ...]
    rbo_p: float
    notes: tuple[str, ...]
    human_ratings: Mapping[str, Any] = field(default_factory=lambda: NOBODY)
    rejected: tuple[str, ...] = ()

    def _declare(self) -> dict[str, Table]:
        """One row a pair."""
        return {"correlations": correlation_table(self.pairs, self.keys)}

    def _for_people(self) -> tuple[Table, ...]:
        """Return the table, without rows over one run if there are others, and say so above it.

        Without any correlation it has no rows: a note says why.
        """
        if all(math.isnan(value.kendall_tau.value) for _, value in self.pairs):
            return (replace(self.table, rows=()),)
        pairs = [pair for pair in self.pairs if pair[1].n_runs > 1]
        if len(pairs) == len(self.pairs):
            return (self.table,)
        n_one = plural(len(self.pairs) - len(pairs), "row")
        caption = f"{n_one} over one run, which has no correlation"
        table = correlation_table(pairs, self.keys)
        return (replace(table, caption=f"left out: {caption}"),)

    def _all_for_people(self) -> tuple[Table, ...]:
        """Return the table with all pairs."""
        return (self.table,)

    @property
    def facts(self) -> dict[str, Any]:
        """How many queries, RBO's p, and how much of the grades people gave."""
        human = dict(self.human_ratings)
        return {"n_queries": self.n_queries, "rbo_p": self.rbo_p, "human_ratings": human}


def compare(
    track: Assessment,
    measures: Measures | None = None,
    official_measures: Measures | None = None,
    *,
    min_ratings: Sequence[int] = (),
    per_query: bool = False,
    rbo_p: float | None = None,
) -> LeaderboardComparison:
    """Correlations of rubric with official measures, over the runs and queries that both sides have."""
    p = DEFAULT_P if rbo_p is None else rbo_p
    measures, official_measures = listed(measures), listed(official_measures)
    comparisons = paired_scores(track, names_of(measures), names_of(official_measures), min_ratings)
    measures = None if measures is None else own_measures(track.folder, measures)
    if per_query:
        comparisons = tuple(scores for scores in comparisons if not of_leaderboard(scores.official_measure))
        if not comparisons:
            raise nothing_to_compare(track)
    pairs: list[tuple[Key, Correlation]] = []
    draws = QueryDraws()
    for scores in comparisons:
        key = key_of(scores, min_ratings)
        if per_query:
            each = per_query_correlations(scores.rubric, scores.official, rbo_p=p)
            pairs += [((*key, query), value) for query, value in zip(scores.query_ids, each, strict=True)]
        else:
            value = correlate(scores.rubric, scores.official, rbo_p=p, draws=draws, ranks=scores.of_ranks)
            pairs.append((key, value))
    keys = (*compared_by(min_ratings), "query_id") if per_query else compared_by(min_ratings)
    judged = track.official is not None
    n_queries = len(common_queries(track) if judged else track.bank.query_ids)
    lines = (
        *comparison_notes(track, comparisons, measures, official_measures),
        *([OVER_TWO_RUNS] if any(len(scores.runs) == 2 for scores in comparisons) else ()),
    )
    swapped = () if per_query else swaps_note(comparisons[0])
    without = () if per_query else without_interval(comparisons)
    human = track.override_summary()
    return LeaderboardComparison(n_queries, keys, tuple(pairs), p, (*lines, *swapped, *without), human)


def swaps_note(scores: PairedScores) -> tuple[str, ...]:
    """Return a note with the number of swapped pairs of runs and the runs whose ranks differ most."""
    runs = find_outliers(scores.runs, scores.rubric, scores.official)
    pairs = list(combinations(runs, 2))
    n_swapped = sum(
        (a.rubric_rank - b.rubric_rank) * (a.official_rank - b.official_rank) < 0 for a, b in pairs
    )
    if not n_swapped:
        return ()
    moved = [run for run in runs[:MOST_NAMED] if run.rubric_rank != run.official_rank]
    ranks = ", ".join(f"{run.run} ({run.rubric_rank:g}, {run.official_rank:g})" for run in moved)
    return (
        f"{n_swapped:,} of {len(pairs):,} pairs of runs swap between {scores.measure} and "
        f"official {scores.official_measure}; largest differences (rank, official rank): {ranks}",
    )
