"""The runs whose ranks differ most between two leaderboards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from trecexam.scores.rank_correlation.ranks import Ranks, checked, means, official_means


@dataclass(frozen=True)
class Outlier:
    """A run's ranks on both leaderboards.

    Attributes:
        rubric_rank, official_rank: from 1, the best, among the runs that are compared; tied runs share the
            mean of their ranks.
        difference: rubric_rank less official_rank; below 0 the rubric places the run too high.
    """

    run: str
    rubric_rank: float
    official_rank: float
    difference: float


def find_outliers(runs: Sequence[str], rubric: ArrayLike, official: ArrayLike) -> tuple[Outlier, ...]:
    """All runs by difference of rank, largest first; ties by official rank, then by name.

    Args:
        runs: the runs' names.
        rubric: values of shape (n_runs, n_queries), higher is better.
        official: values of the same shape, for the same queries; or, where only a leaderboard is known,
            scores of shape (n_runs,), higher is better (negate ranks).

    Raises:
        ValueError: the shapes don't fit, or a value is not finite.
    """
    rubric_values, official_values = checked(rubric, official)
    if len(rubric_values) != len(runs):
        raise ValueError(f"{len(runs)} runs, and rubric values of {len(rubric_values)}")
    if not rubric_values.shape[1]:
        return ()
    both_means = means(rubric_values), official_means(official_values)
    ranks = [Ranks.of(side[:, None]).mean_ranks[:, 0].tolist() for side in both_means]
    rows = (
        Outlier(run, rubric_rank, official_rank, rubric_rank - official_rank)
        for run, rubric_rank, official_rank in zip(runs, *ranks, strict=True)
    )
    return tuple(sorted(rows, key=lambda row: (-abs(row.difference), row.official_rank, row.run)))
