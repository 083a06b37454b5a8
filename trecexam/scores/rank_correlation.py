"""Rank correlations of leaderboards: Kendall's tau-b, Spearman's rho, tau_AP, RBO, and draws of queries.

A coefficient takes two rankings (`Ranks`) of the same n runs with equally many columns, or a single one on
one side, and gives an array of shape (n_columns,). `tau_b_columns`, `pearson_r` and `tau_gap_columns` take
scores.
"""

from __future__ import annotations

import itertools
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
        """Return the rankings of scores of shape (n, n_columns); only equal scores are ties."""
        better = (scores[:, None] > scores[None, :]).view(np.int8)
        above = over_others(better)
        tied = len(scores) - above - over_others(better.swapaxes(0, 1))
        return cls(better - better.swapaxes(0, 1), above, tied)


def ranked(a: Floats, b: Floats) -> Iterator[tuple[slice, Ranks, Ranks]]:
    """Yield columns, and their rankings in a and in b, in chunks that limit memory.

    Args:
        a, b: scores of shape (n, n_columns); a single column goes with every column of the other.
    """
    for part in _parts(len(a), max(a.shape[1], b.shape[1])):
        of_a, of_b = (Ranks.of(side if side.shape[1] == 1 else side[:, part]) for side in (a, b))
        yield part, of_a, of_b


def rankings(scores: Floats) -> Iterator[tuple[slice, Ranks]]:
    """Yield the rankings of columns of scores, in chunks like `ranked`."""
    for part in _parts(*scores.shape):
        yield part, Ranks.of(scores[:, part])


def _parts(n: int, n_columns: int) -> Iterator[slice]:
    """Yield chunks of the columns of leaderboards of n runs."""
    step = max(1, min(64, _MOST // max(1, n**2)), _CELLS // max(1, n**2))
    for start in range(0, n_columns, step):
        yield slice(start, min(start + step, n_columns))


def over_others(cells: NDArray[np.int8]) -> Ints:
    """Return sums over the first run of cells of -1, 0 and 1, shape (n, n_columns)."""
    # Bytes are added several times as fast as what they would have to be made; 127 sum to one at most.
    sums = np.zeros(cells.shape[1:], np.int64)
    for start in range(0, len(cells), 127):
        sums += cells[start : start + 127].sum(axis=0, dtype=np.int8)
    return sums


def means(values: Floats) -> Floats:
    """Return means over queries, the second axis, from exact sums, so that ties are ties."""
    return np.round([math.fsum(row) / len(row) for row in values.tolist()], TIE_DECIMALS)


def checked(rubric: ArrayLike, official: ArrayLike, *, ranks: bool = True) -> tuple[Floats, Floats]:
    """Return both sides as arrays (n_runs, n_queries); with `ranks`, official ones may be (n_runs,)."""
    rubric_values, official_values = np.asarray(rubric, np.float64), np.asarray(official, np.float64)
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
    """Return all runs by difference of rank, largest first; ties by official rank, then by name."""
    rubric_values, official_values = checked(rubric, official)
    if len(rubric_values) != len(runs):
        raise ValueError(f"{len(runs)} runs, and rubric values of {len(rubric_values)}")
    if not rubric_values.shape[1]:
        return ()
    both = np.stack([means(rubric_values), official_means(official_values)], axis=1)
    sides = Ranks.of(both)
    ranks = (sides.above + (sides.tied + 1) / 2).T.tolist()
    rows = (Outlier(run, ours, theirs, ours - theirs) for run, ours, theirs in zip(runs, *ranks, strict=True))
    return tuple(sorted(rows, key=lambda row: (-abs(row.difference), row.official_rank, row.run)))


#: The first ten ranks have 86% of the weight (Webber et al., equation 21).
DEFAULT_P = 0.9


def kendall_tau(a: Ranks, b: Ranks) -> Floats:
    """Kendall's tau-b, -1..1; NaN if all runs are tied on a side.

    Kendall, "The treatment of ties in ranking problems", Biometrika 33(3), 1945: concordant less
    discordant pairs, over the geometric mean of the numbers of pairs that are untied on either side.
    """
    agreement = over_others(a.signs * b.signs).sum(axis=0)
    untied = [(len(side.tied) - side.tied).sum(axis=0).astype(np.float64) for side in (a, b)]
    return _ratio(agreement, np.sqrt(untied[0] * untied[1]))


def tau_b_columns(a: Floats, b: Floats) -> Floats:
    """Return `kendall_tau` of columns of scores, shape (n_runs, n_columns); a single one goes with all."""
    taus = np.empty(max(a.shape[1], b.shape[1]))
    for part, of_a, of_b in ranked(a, b):
        taus[part] = kendall_tau(of_a, of_b)
    return taus


def spearman_rho(a: Ranks, b: Ranks) -> Floats:
    """Spearman's rank correlation with mean ranks for ties, -1..1; NaN if all runs are tied."""
    # Twice a rank's distance from the mean rank n+1 / 2, with the sign turned: whole numbers.
    spread_a, spread_b = (len(side.tied) - side.tied - 2 * side.above for side in (a, b))
    scale = np.sqrt((spread_a**2).sum(axis=0).astype(np.float64) * (spread_b**2).sum(axis=0))
    return _ratio((spread_a * spread_b).sum(axis=0), scale)


def tau_ap_columns(truth: Ranks, estimate: Ranks) -> Floats:
    """AP rank correlation, which weighs mistakes at the top of the estimated ranking more; -1..1.

    Without ties it is the coefficient of Yilmaz, Aslam & Robertson, "A New Rank Correlation Coefficient
    for Information Retrieval", SIGIR 2008:

        tau_AP = 2 / (n-1) * sum over ranks i = 2..n of the estimate of C(i) / (i-1)  -  1

    with C(i) the number of runs above rank i that the truth too has above the run at rank i. Ties in the
    estimate: the expectation over all orders of the tied runs (tau_AP,a of Urbano & Marrero, "The
    Treatment of Ties in AP Correlation", ICTIR 2017). Ties in the truth: half a concordance. NaN for
    fewer than two runs.
    """
    n = len(estimate.tied)
    if n < 2:
        return np.full(max(truth.tied.shape[1], estimate.tied.shape[1]), np.nan)
    above, tied = estimate.above, estimate.tied
    # Twice the number of runs above this one that the truth too has above it; a tie there is one.
    surely = above + over_others((estimate.signs > 0) * truth.signs)
    # A run of a tied group is at each of its ranks with probability 1/tied. Of the r runs above it there,
    # `above` are surely above, and the other r - above are of the group, where one is right of each two.
    # Sums over those ranks of 1/r and (r - above)/r, by above and tied, each from its own first term.
    r = np.arange(n)[:, None] + np.arange(n)
    weight = np.cumsum(np.divide(1, r, out=np.zeros((n, n)), where=r > 0), axis=1)
    within = np.cumsum(np.divide(np.arange(n), r, out=np.zeros((n, n)), where=r > 0), axis=1)
    ranks = above, tied - 1
    total = 0.5 * ((surely * weight[ranks] + within[ranks]) / tied).sum(axis=0)
    return np.asarray(2 * total / (n - 1) - 1)


def tau_ap_b_columns(a: Ranks, b: Ranks) -> Floats:
    """Symmetric AP rank correlation of two leaderboards, -1..1.

    tau_AP,b of Urbano & Marrero, "The Treatment of Ties in AP Correlation", ICTIR 2017: the mean of both
    directions. In each, of every run but those tied at the top, the share of the runs above it that the other
    side too has above it. Ties on either side are no concordance. NaN where all runs are tied in one of the
    two. Without ties it is the mean of the two tau_AP.
    """
    # How many runs both sides have above a run: the same in either direction.
    concordant = over_others(((a.signs > 0) & (b.signs > 0)).view(np.int8))
    n_columns = concordant.shape[1]
    directions = []
    for side in (a, b):
        shares = (concordant / np.maximum(side.above, 1)).sum(axis=0)
        lower = np.broadcast_to((side.above > 0).sum(axis=0), n_columns)
        directions.append(2 * _ratio(shares, lower.astype(np.float64)) - 1)
    return np.asarray((directions[0] + directions[1]) / 2)


def rbo_columns(a: Ranks, b: Ranks, p: float = DEFAULT_P) -> Floats:
    """Rank-biased overlap of many pairs of leaderboards at once, 0..1.

    Webber, Moffat & Zobel, "A Similarity Measure for Indefinite Rankings", TOIS 28(4), 2010, in its
    extrapolated form RBO_ext, for two rankings of the same n runs:

        RBO = p^n + (1-p)/p * sum over depths d = 1..n of p^d * X_d / d

    with X_d the number of runs that both have among the first d. Ties: X_d is its expectation over all
    orders of the tied runs, each side by itself, which is RBO^a of Corsi & Urbano, "The Treatment of Ties
    in Rank-Biased Overlap", SIGIR 2024: a run whose ties take the ranks t..b is among the first d with
    the probability 0 for d < t, 1 for d > b, else (d-t+1) / (b-t+1), and X_d is the sum of the products of
    both sides' probabilities. So two equal rankings have 1 without ties, and less with ties.

    Two rankings that have nothing to do with each other have (1 - p^n) / (n (1-p)) in expectation, not 0,
    and so has a ranking in which all runs are tied.

    Args:
        p: persistence; the smaller, the more the top weighs.

    Raises:
        ValueError: p is not between 0 and 1.
    """
    if not 0 < p < 1:
        raise ValueError(f"p = {p} of rank-biased overlap: a number between 0 and 1 needed")
    n = len(a.tied)
    # The probabilities are 0, then a line, then 1, so that a run's share of the sum over depths d has three
    # parts: both are lines, one is, none is. Each is a difference of sums of p^d / d * (1, d, d^2) up to d.
    depths = np.arange(1, n + 1)
    zeroth, first, second = (
        np.concatenate(([0.0], np.cumsum(p**depths * depths.astype(float) ** power))) for power in (-1, 0, 1)
    )
    bottom_a, bottom_b = a.above + a.tied, b.above + b.tied
    start = np.maximum(a.above, b.above)
    both = np.maximum(np.minimum(bottom_a, bottom_b), start)
    end = np.maximum(bottom_a, bottom_b)
    quadratic = (
        second[both]
        - second[start]
        - (a.above + b.above) * (first[both] - first[start])
        + a.above * b.above * (zeroth[both] - zeroth[start])
    ) / (a.tied * b.tied)
    later = bottom_a > bottom_b
    above, tied = np.where(later, a.above, b.above), np.where(later, a.tied, b.tied)
    linear = (first[end] - first[both] - above * (zeroth[end] - zeroth[both])) / tied
    total = (quadratic + linear + zeroth[n] - zeroth[end]).sum(axis=0)
    # Rounding may add an epsilon to 1.
    overlap: Floats = np.minimum((1 - p) / p * total + p**n, 1.0)
    return overlap


def top_tau_columns(truth: Ranks, estimate: Ranks, depths: Sequence[int]) -> Floats:
    """Return `kendall_tau` among the best runs by the truth, shape (len(depths), n_columns).

    Runs that are tied with the last of the best are among them. NaN where there are fewer runs than that, or
    all of the best are tied in one of the two. `depths` are rising numbers of runs.
    """
    n, n_columns = len(truth.tied), max(truth.tied.shape[1], estimate.tied.shape[1])
    taus = np.full((len(depths), n_columns), np.nan)
    depths = [k for k in depths if k <= n]
    if not depths:
        return taus
    n_best = (truth.above[None] < np.array(depths)[:, None, None]).sum(axis=1)
    first = np.argsort(truth.above, axis=0, kind="stable")[: n_best.max()]
    t, e = (
        side.signs[first[:, None], first[None, :], np.arange(side.signs.shape[2])]
        for side in (truth, estimate)
    )
    # Each pair once, with the one of its runs that is further down; the best runs are then the first rows.
    earlier = np.tri(len(first), k=-1, dtype=np.int8).T[:, :, None]
    agreement, untied_t, untied_e = (
        np.cumsum(over_others(cells * earlier), axis=0) for cells in (t * e, t * t, e * e)
    )
    columns = np.arange(n_columns)
    for row, last in enumerate(n_best - 1):
        over, of_t, of_e = (
            cells[last, np.minimum(columns, cells.shape[1] - 1)] for cells in (agreement, untied_t, untied_e)
        )
        taus[row] = _ratio(over, np.sqrt(of_t.astype(np.float64) * of_e))
    return taus


def pearson_r(a: Floats, b: Floats) -> Floats:
    """Return Pearson's correlation of values, shape (n_runs, n_columns); NaN if all runs tie on a side."""
    a, b = (np.where(np.ptp(side, axis=0) > 0, side - side.mean(axis=0), 0) for side in (a, b))
    return _ratio((a * b).sum(axis=0), np.sqrt((a**2).sum(axis=0) * (b**2).sum(axis=0)))


def tau_gap_columns(truth: Floats, estimate: Floats) -> Floats:
    """Return tau_GAP: the share of the truth's differences that an order has right, from the top; -1..1.

    Gao & Oard, "A Head-Weighted Gap-Sensitive Correlation Coefficient", SIGIR 2015:

        tau_GAP = 2 / (n-1) * sum over ranks i = 2..n of the estimate of C(i) / G(i)  -  1

    with G(i) the sum of the differences, in the truth, between the run at rank i and each run above it, and
    C(i) of those where the truth, too, has that one above. As in TREC AutoJudge, ranks at which all
    differences are 0 are left out, and ties of the estimate are in the order of the rows. NaN where all runs
    are tied in the truth. One of the sides may have a single column.
    """
    n_columns = max(truth.shape[1], estimate.shape[1])
    gaps = np.full(n_columns, np.nan)
    for column in range(n_columns):
        of_truth, of_estimate = (side[:, min(column, side.shape[1] - 1)] for side in (truth, estimate))
        in_order = of_truth[np.argsort(-of_estimate, kind="stable")]
        # Rows: the run at a rank; columns: those above it.
        above = np.tril(in_order[None, :] - in_order[:, None], k=-1)
        all_gaps = np.abs(above).sum(axis=1)
        has_gap = all_gaps > 0
        if has_gap.any():
            gaps[column] = 2 * (np.maximum(above, 0).sum(axis=1)[has_gap] / all_gaps[has_gap]).mean() - 1
    return gaps


def _ratio(over: Floats | np.ndarray, under: Floats) -> Floats:
    ratio: Floats = np.divide(over, under, out=np.full(under.shape, np.nan), where=under > 0)
    return ratio


#: Sides of comparisons whose subsets are kept ranked: a few ten megabytes.
_KEPT = 3
#: At least this share of what sets runs apart is assumed to be theirs: else nothing would be left to rank.
_LEAST_SIGNAL = 0.02


class QueryDraws:
    """Draws of queries with the rankings of both sides, cached between comparisons.

    Args:
        resamples: how many subsets of the queries are looked at; fewer where there are no more, and then
            each once. There are half as many samples. 0 for no intervals.
        seed: of the random numbers; the same seed gives the same draws.
    """

    def __init__(self, resamples: int = 300, seed: int = 0) -> None:
        self.resamples = resamples
        self._seed = seed
        self._ranked: dict[tuple[bytes, tuple[int, ...]], tuple[tuple[slice, Ranks], ...]] = {}

    @staticmethod
    def n_deleted(n_queries: int) -> int:
        """The number of queries deleted from each subset: a third, at least one."""
        return max(1, n_queries // 3)

    def subset_rankings(self, values: Floats) -> tuple[tuple[slice, Ranks], ...]:
        """Return the rankings of the runs' means over each subset of the queries, part by part."""
        key = values.tobytes(), values.shape
        found = self._ranked.pop(key, None) or tuple(rankings(self.subset_means(values)))
        while len(self._ranked) >= _KEPT:
            del self._ranked[next(iter(self._ranked))]
        # The one that was asked for last goes last.
        self._ranked[key] = found
        return found

    def sample_errors(self, values: Floats) -> Floats:
        """Return deviations of the runs' means over bootstrap samples of queries, (n_runs, n_samples).

        They are from the mean over all n queries, times sqrt(n / (n - 1)): their variance is unbiased.
        """
        n_queries, n_samples = values.shape[1], max(1, self.resamples // 2)
        drawn = np.random.default_rng([self._seed, 1]).integers(0, n_queries, size=(n_samples, n_queries))
        # How often each query is in each sample.
        cells = np.bincount((drawn + np.arange(n_samples)[:, None] * n_queries).ravel(), minlength=drawn.size)
        weights = cells.reshape(n_samples, n_queries).T / n_queries - 1 / n_queries
        errors: Floats = values @ weights * math.sqrt(n_queries / (n_queries - 1))
        return errors

    def subset_means(self, values: Floats) -> Floats:
        """Return the runs' rounded means over each subset of the queries, shape (n_runs, n_subsets)."""
        in_subset = self._subsets(values.shape[1])
        rounded: Floats = np.round(values @ in_subset / in_subset[:, 0].sum(), TIE_DECIMALS)
        return rounded

    def _subsets(self, n_queries: int) -> Floats:
        """1 for each query that is in a subset, else 0; shape (n_queries, n_subsets)."""
        size = self.n_deleted(n_queries)
        if math.comb(n_queries, size) <= self.resamples:
            deleted = np.array(list(itertools.combinations(range(n_queries), size)))
        else:
            keys = np.random.default_rng(self._seed).random((self.resamples, n_queries))
            deleted = np.argpartition(keys, size, axis=1)[:, :size]
        in_subset = np.ones((n_queries, len(deleted)))
        in_subset[deleted.T, np.arange(len(deleted))] = 0
        return in_subset

    def standard_error(self, of_subsets: Floats, n_queries: int) -> Floats:
        """The delete-d jackknife's standard error of figures over subsets (last axis)."""
        deleted = self.n_deleted(n_queries)
        error: Floats = of_subsets.std(axis=-1) * math.sqrt((n_queries - deleted) / deleted)
        return error


def denoised(rubric: Floats, official: Floats) -> tuple[Floats, Floats]:
    """Return the runs' means on both sides, shrunk to the variance without the queries' noise, and centred.

    Means over few queries lie further apart than the runs do over all that might be asked, and agree less
    (or, as both sides have the same queries, more). Along the two axes on which covariance of means C and
    of their noise S are both diagonal, deviations are multiplied by the root of the share that is not noise:
    A = C^1/2 (I - C^-1/2 S C^-1/2)^1/2 C^-1/2, so that A C A' = C - S. These are constrained empirical Bayes
    estimates (Louis, "Estimating a Population of Parameter Values Using Bayes and Empirical Bayes Methods",
    JASA 79, 1984), of two values each. S is of the rest of the values without run and query means. Official
    scores of shape (n_runs,) have no noise.
    """
    n_runs, n_queries = rubric.shape
    sides = [rubric, official if official.ndim == 2 else np.repeat(official[:, None], n_queries, axis=1)]
    centred = [side - side.mean(axis=0) for side in sides]
    means = np.mean(centred, axis=2)
    scale = np.sqrt((means**2).sum(axis=1, keepdims=True) / (n_runs - 1))
    left = (np.array(centred) - means[:, :, None]) / scale[:, :, None]
    noise = np.array([[np.vdot(a, b) for b in left] for a in left]) / (
        (n_runs - 1) * (n_queries - 1) * n_queries
    )
    spread, axes = np.linalg.eigh((means / scale) @ (means / scale).T / (n_runs - 1))
    # Sides that agree to the last digit have one axis alone.
    used = spread > 1e-9
    root = axes[:, used] * np.sqrt(spread[used])
    whitened = axes[:, used].T / np.sqrt(spread[used])[:, None]
    share, turn = np.linalg.eigh(np.eye(int(used.sum())) - whitened @ noise @ whitened.T)
    signal = turn * np.sqrt(np.clip(share, _LEAST_SIGNAL, 1)) @ turn.T
    a, b = root @ signal @ whitened @ (means / scale) * scale
    return a, b
