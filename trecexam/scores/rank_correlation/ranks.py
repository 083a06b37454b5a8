"""Leaderboards as rankings with ties: a column of scores each, compared at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trecexam.scores.values import TIE_DECIMALS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: How many (run, run, leaderboard) cells are worked on at once: as many as the processor's cache holds, but
#: not less than 64 leaderboards, which cost more one by one, unless these are some 20 MB.
_CELLS, _MOST = 1 << 20, 1 << 22


@dataclass(frozen=True, eq=False)
class Ranks:
    """Rankings of n runs from columns of scores; higher scores are better.

    Attributes:
        signs: int8 of shape (n, n, n_columns): 1, 0, -1 where the first run is better than, tied with,
            worse than the second.
        above: of shape (n, n_columns): how many runs are better than this one.
        tied: of the same shape: how many have its score; at least 1, itself.
    """

    signs: NDArray[np.int8]
    above: Ints
    tied: Ints

    @classmethod
    def of(cls, scores: Floats) -> Ranks:
        """The rankings of scores of shape (n, n_columns); only equal scores are ties."""
        better = (scores[:, None] > scores[None, :]).view(np.int8)
        above = over_others(better)
        tied = len(scores) - above - over_others(better.swapaxes(0, 1))
        return cls(better - better.swapaxes(0, 1), above, tied)


def ranked(a: Floats, b: Floats) -> Iterator[tuple[slice, Ranks, Ranks]]:
    """Yield columns, and their rankings in a and in b, in chunks that limit memory.

    Args:
        a, b: scores of shape (n, n_columns); a single column goes with every column of the other.
    """
    n_columns = max(a.shape[1], b.shape[1])
    step = _step(len(a))
    single = [Ranks.of(side) if side.shape[1] == 1 else None for side in (a, b)]
    for start in range(0, n_columns, step):
        part = slice(start, min(start + step, n_columns))
        of_a, of_b = (
            single_ranks or Ranks.of(side[:, part]) for single_ranks, side in zip(single, (a, b), strict=True)
        )
        yield part, of_a, of_b


def rankings(scores: Floats) -> Iterator[tuple[slice, Ranks]]:
    """The rankings of columns of scores, in chunks like `ranked`."""
    step = _step(len(scores))
    for start in range(0, scores.shape[1], step):
        part = slice(start, min(start + step, scores.shape[1]))
        yield part, Ranks.of(scores[:, part])


def _step(n: int) -> int:
    """The number of leaderboards of n runs per chunk."""
    return max(1, min(64, _MOST // max(1, n**2)), _CELLS // max(1, n**2))


def over_others(cells: NDArray[np.int8]) -> Ints:
    """Sums over the first run of cells of -1, 0 and 1, shape (n, n_columns)."""
    # Bytes are added several times as fast as what they would have to be made; 127 sum to one at most.
    sums = np.zeros(cells.shape[1:], np.int64)
    for start in range(0, len(cells), 127):
        sums += cells[start : start + 127].sum(axis=0, dtype=np.int8)
    return sums


def means(values: Floats) -> Floats:
    """Return means over queries, the second axis, from exact sums, so that ties are ties."""
    return np.round([math.fsum(row) / len(row) for row in values.tolist()], TIE_DECIMALS)


def checked(rubric: ArrayLike, official: ArrayLike, *, ranks: bool = True) -> tuple[Floats, Floats]:
    """Return both sides as arrays of shape (n_runs, n_queries); with `ranks`, official ones may be (n_runs,).

    Raises:
        ValueError: the shapes don't fit, or a value is not finite.
    """
    rubric_values, official_values = (np.asarray(side, np.float64) for side in (rubric, official))
    shape, official_shape = rubric_values.shape, official_values.shape
    fit: Any = shape == official_shape or (ranks and shape[:1] == official_shape)
    if rubric_values.ndim != 2 or not fit:
        raise ValueError(f"rubric values of shape {shape} and official ones of {official_shape} don't fit")
    if not (np.isfinite(rubric_values).all() and np.isfinite(official_values).all()):
        raise ValueError("values to compare must be finite")
    return rubric_values, official_values


def official_means(official: Floats) -> Floats:
    """The official leaderboard's means, or its scores if only these are known."""
    return means(official) if official.ndim == 2 else np.round(official, TIE_DECIMALS)


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
    """Return all runs by difference of rank, largest first; ties by official rank, then by name.

    Args:
        rubric, official: as `correlate` takes them.

    Raises:
        ValueError: the shapes don't fit, or a value is not finite.
    """
    rubric_values, official_values = checked(rubric, official)
    if len(rubric_values) != len(runs):
        raise ValueError(f"{len(runs)} runs, and rubric values of {len(rubric_values)}")
    if not rubric_values.shape[1]:
        return ()
    both_means = means(rubric_values), official_means(official_values)
    both = (Ranks.of(side[:, None]) for side in both_means)
    ranks = [(side.above + (side.tied + 1) / 2)[:, 0].tolist() for side in both]
    rows = (
        Outlier(run, rubric_rank, official_rank, rubric_rank - official_rank)
        for run, rubric_rank, official_rank in zip(runs, *ranks, strict=True)
    )
    return tuple(sorted(rows, key=lambda row: (-abs(row.difference), row.official_rank, row.run)))
