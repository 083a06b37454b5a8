"""Rank-biased overlap of two leaderboards of the same runs, which weighs the top most."""

from __future__ import annotations

import numpy as np

from trecexam.scores.rank_correlation.ranks import Floats, Ranks

#: The first ten ranks have 86% of the weight (Webber et al., equation 21).
DEFAULT_P = 0.9


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
        a, b: rankings of the same n runs, at least one, with equally many columns, or a single one on
            one side.
        p: persistence, between 0 and 1; the smaller, the more the top weighs.

    Returns:
        Shape (n_columns,).

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
