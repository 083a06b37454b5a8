"""Finds few queries that order the runs like all queries, and tests them on other runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trecexam.features.correlation.paired_scores import nothing_to_compare
from trecexam.features.correlation.tables import LAYOUT
from trecexam.line.cautions import judgment_cautions, rating_cautions
from trecexam.line.evaluation import official_values, rubric_values
from trecexam.line.loaded_track import of_documents
from trecexam.line.measure_names import names_of
from trecexam.line.measures import first_measure_note
from trecexam.scores.rank_correlation.ranks import Floats, means
from trecexam.scores.rank_correlation.tau import tau_b_columns
from trecexam.scores.values import TIE_DECIMALS
from trecexam.tables.result import Result
from trecexam.tables.table import Table, Value

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment
    from trecexam.line.measure_names import MeasureLike
    from trecexam.scores.values import MeasureValues

#: How often the runs are cut into halves; each half is chosen on once.
SPLITS = 25
HEADER = (
    "measure",
    "n_queries",
    "query_id",
    "kendall_tau",
    "kendall_tau.chosen_half",
    "kendall_tau.other_half",
    "kendall_tau.random_queries",
)


@dataclass(frozen=True, eq=False)
class Representative:
    """The chosen queries of one measure, in the order in which they were chosen.

    Attributes:
        measure: as ir_measures prints it; "(official)" after it where it is of the official judgments.
        n_runs: how many runs are ordered.
        query_ids: the queries.
        taus: of each and those before it, tau-b of their leaderboard with that of all queries.
        chosen_half, other_half, random_queries: of as many queries, see `split_half`.
    """

    measure: str
    n_runs: int
    query_ids: tuple[str, ...]
    taus: tuple[float, ...]
    chosen_half: Floats
    other_half: Floats
    random_queries: Floats


@dataclass(frozen=True)
class RepresentativeQueries(Result):
    """The chosen queries of all measures, a row a measure and query.

    Attributes:
        chosen: one a measure.
        notes: how much of it is chance.
    """

    chosen: tuple[Representative, ...]
    notes: tuple[str, ...]

    def declare(self) -> dict[str, Table]:
        """One row a measure and query."""
        rows: list[tuple[Value, ...]] = []
        for each in self.chosen:
            halves_of = (each.chosen_half, each.other_half, each.random_queries)
            columns = zip(each.query_ids, each.taus, *(half.tolist() for half in halves_of), strict=True)
            rows += [(each.measure, n, *row) for n, row in enumerate(columns, 1)]
        return {"queries": Table(HEADER, tuple(rows), layout=LAYOUT)}


@of_documents
def representative(
    track: Assessment,
    measures: Sequence[MeasureLike] | None = None,
    official_measures: Sequence[MeasureLike] | None = None,
    *,
    most: int = 10,
) -> RepresentativeQueries:
    """Few queries whose leaderboard is nearest to that of all queries.

    They are chosen to fit the runs that are here. How much of that holds for other runs is told by halves:
    chosen on half of the runs, and looked at on the other half.

    Args:
        measures: None for the track's first.
        official_measures: measures on the official judgments, beside those.
        most: how many queries, at least 1.

    Raises:
        TrecexamError: there are no runs; or no official judgments, and a measure on them is requested.
        ValueError: a measure cannot be computed.
    """
    if not track.runs:
        raise nothing_to_compare(track)
    rubric = rubric_values(track, names_of(measures))
    names = rubric.measures[:1] if measures is None else rubric.measures
    chosen = [_chosen(rubric, name, name, most) for name in names]
    if official_measures:
        official = official_values(track, names_of(official_measures))
        chosen += [_chosen(official, name, f"{name} (official)", most) for name in official.measures]
    thresholds = rating_cautions(track.config, track.measures[:1] if measures is None else measures)
    if official_measures:
        thresholds += judgment_cautions(track, official_measures)
    first = first_measure_note(track) if measures is None else ()
    return RepresentativeQueries(tuple(chosen), (*first, *thresholds, *map(_remark, chosen)))


def _chosen(values: MeasureValues, measure: str, display_name: str, most: int) -> Representative:
    matrix = values.matrix(measure)
    query_indices, taus = choose_queries(matrix, most)
    query_ids = tuple(values.query_ids[query_index] for query_index in query_indices)
    return Representative(
        display_name, len(matrix), query_ids, tuple(taus), *split_half(matrix, len(query_indices))
    )


def _remark(chosen: Representative) -> str:
    n, measure = len(chosen.query_ids), chosen.measure
    caution = f"{measure}: the queries were chosen to fit these {chosen.n_runs:,} runs"
    figures = [half[-1] for half in (chosen.chosen_half, chosen.other_half, chosen.random_queries) if n]
    if not figures or any(map(math.isnan, figures)):
        return f"{caution}; too few runs to test by halves how well they order other runs"
    return (
        f"{caution}: chosen on half of the runs, {n:,} queries have tau {figures[0]:.2f} there and "
        f"{figures[1]:.2f} on the other half; {n:,} random queries have {figures[2]:.2f}"
    )


def choose_queries(values: Floats, most: int) -> tuple[list[int], list[float]]:
    """Chooses queries greedily: each brings the leaderboard closest to that of all queries.

    Near is Kendall's tau-b of the runs' means. Of equally good queries the first is chosen; one that leaves
    all runs tied is worse than any other. Greedy choice finds a good set, not always the best one.

    Args:
        values: of shape (n_runs, n_queries).
        most: how many queries.

    Returns:
        The queries' places, in the order of choice, and tau with each of them added; NaN where all runs are
        tied.
    """
    truth = means(values)[:, None] if values.size else np.zeros((len(values), 1))
    left, chosen, taus = list(range(values.shape[1])), list[int](), list[float]()
    total = np.zeros((len(values), 1))
    while left and len(chosen) < most:
        candidates = np.round((total + values[:, left]) / (len(chosen) + 1), TIE_DECIMALS)
        of_candidates = tau_b_columns(candidates, truth)
        # Rounded, as equal coefficients are computed in different ways.
        best_index = int(np.argmax(np.nan_to_num(of_candidates, nan=-2.0).round(TIE_DECIMALS)))
        taus.append(float(of_candidates[best_index]))
        chosen.append(left.pop(best_index))
        total = total + values[:, chosen[-1:]]
    return chosen, taus


def split_half(values: Floats, most: int, seed: int = 0) -> tuple[Floats, Floats, Floats]:
    """Tests the choice of queries on runs that were not used for it.

    The runs are cut into halves, `SPLITS` times; queries are chosen on each half. All are tau-b with the
    leaderboard of all queries on the same half, as means over the halves:

    Returns:
        Of shape (most,) each: with 1, 2, ... chosen queries on the half that they were chosen on; the same
        queries on the other half; as many random queries on that one. NaN for fewer than four runs.
    """
    rng = np.random.default_rng(seed)
    n_runs, n_queries = values.shape
    if n_runs < 4:
        nothing = np.full(most, math.nan)
        return nothing, nothing, nothing
    figures = []
    for half, other in halves(n_runs, SPLITS, seed):
        chosen, taus = choose_queries(values[half], most)
        drawn = rng.permutation(n_queries)[: len(chosen)].tolist()
        figures.append([taus, _taus(values[other], chosen), _taus(values[other], drawn)])
    stacked = np.array(figures)
    counted = ~np.isnan(stacked)
    n_counted = counted.sum(axis=0)
    sums = np.where(counted, stacked, 0).sum(axis=0)
    chosen_half, other_half, random = np.where(n_counted > 0, sums / np.maximum(n_counted, 1), math.nan)
    return chosen_half, other_half, random


def halves(n_runs: int, splits: int, seed: int = 0) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Random halves of the runs, each split in both orders."""
    rng = np.random.default_rng(seed)
    for _ in range(splits):
        order = rng.permutation(n_runs)
        half, other = order[: n_runs // 2], order[n_runs // 2 :]
        yield half, other
        yield other, half


def _taus(values: Floats, queries: Sequence[int]) -> list[float]:
    """tau-b of the first 1, 2, ... of these queries with all queries."""
    sums = values[:, queries].cumsum(axis=1)
    few = np.round(sums / np.arange(1, len(queries) + 1), TIE_DECIMALS)
    taus: list[float] = tau_b_columns(few, means(values)[:, None]).tolist()
    return taus
