"""Pairs of runs that the rubric leaderboard orders differently, with significance tests.

Each difference of two runs has a two-sided paired t test over the queries (Student; the values of
`scipy.stats.ttest_rel`), on the official values and on the rubric values. The pairs that are listed were
chosen by looking at the data, so the p values are adjusted over all pairs of runs of the measure, with
Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6, 1979.

A disagreement is called as in Moffat, Scholer & Thomas, "Models and Metrics: IR Evaluation as a User
Process", ADCS 2012: active where both differences are significant, mixed where one is, passive where none is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from trecexam.scores.paired_tests import holm, paired_p, with_untested
from trecexam.scores.rank_correlation.ranks import checked, means, official_means
from trecexam.scores.values import TIE_DECIMALS

Verdict = Literal["active", "mixed", "passive"]
#: A difference is significant where its adjusted p value is below this.
SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Swap:
    """Two runs in opposite orders.

    Attributes:
        run_a: the run that is better officially.
        run_b: the run that is better on the rubric.
        official_difference: official mean of a less that of b, above 0; or by how many ranks a is
            better, where only ranks are known.
        rubric_difference: rubric mean of a less that of b, below 0.
        official_p, rubric_p: of the paired t tests; NaN if untested: only ranks are known, there
            is one query, or the difference is the same on every query.
        official_p_holm, rubric_p_holm: adjusted over all pairs of runs.
        verdict: None where one of the tests is missing.
    """

    run_a: str
    run_b: str
    official_difference: float
    rubric_difference: float
    official_p: float
    rubric_p: float
    official_p_holm: float
    rubric_p_holm: float
    verdict: Verdict | None


@dataclass(frozen=True)
class Swaps:
    """Comparison of two leaderboards over all pairs of runs.

    Attributes:
        n_pairs: pairs of the compared runs.
        n_tied: pairs that are tied on one side, or both; neither swapped nor in order.
        swaps: the pairs in opposite orders: active disagreements first, then mixed, passive, untested ones;
            of each the greatest official difference first.
        agreements: how many of the pairs in the same order differ significantly on both sides ("active"), on
            one ("mixed"), on none ("passive"); those without a test are not counted.
    """

    n_pairs: int
    n_tied: int
    swaps: tuple[Swap, ...]
    agreements: dict[Verdict, int]

    @property
    def disagreements(self) -> dict[Verdict, int]:
        """The number of swaps with each verdict."""
        return {verdict: sum(s.verdict == verdict for s in self.swaps) for verdict in get_args(Verdict)}


def find_swaps(runs: Sequence[str], rubric: ArrayLike, official: ArrayLike, most: int | None = None) -> Swaps:
    """The swapped pairs of runs.

    Args:
        runs: the runs' names.
        rubric: values of shape (n_runs, n_queries), higher is better.
        official: values of the same shape, for the same queries; or, where only a leaderboard is known,
            scores of shape (n_runs,), higher is better (negate ranks).
        most: look at the pairs of so many runs alone, the best by the official side; p values are still
            adjusted over the pairs of all runs, so they are at most too large.

    Raises:
        ValueError: the shapes don't fit, or a value is not finite.
    """
    rubric_values, official_values = checked(rubric, official)
    if len(rubric_values) != len(runs):
        raise ValueError(f"got {len(runs)} runs, but rubric values of {len(rubric_values)}")
    n_all_pairs = len(runs) * (len(runs) - 1) // 2
    if most is not None and most < len(runs):
        best = np.sort(np.argsort(-official_means(official_values), kind="stable")[:most])
        runs = [runs[row] for row in best.tolist()]
        rubric_values, official_values = rubric_values[best], official_values[best]
    first, second = np.triu_indices(len(runs), k=1)
    if not len(first) or not rubric_values.shape[1]:
        return Swaps(len(first), len(first), (), dict.fromkeys(get_args(Verdict), 0))
    by_rubric, by_official = (
        np.round(side[first] - side[second], TIE_DECIMALS)
        for side in (means(rubric_values), official_means(official_values))
    )
    p_rubric = paired_p(rubric_values)
    p_official = paired_p(official_values) if official_values.ndim == 2 else np.full(len(first), math.nan)
    holm_rubric, holm_official = (
        holm(with_untested(p, n_all_pairs))[: len(first)] for p in (p_rubric, p_official)
    )
    significant = (holm_rubric < SIGNIFICANCE).astype(int) + (holm_official < SIGNIFICANCE)
    tested = ~(np.isnan(holm_rubric) | np.isnan(holm_official))
    order = np.sign(by_rubric) * np.sign(by_official)
    named = dict(zip(get_args(Verdict), (2, 1, 0), strict=True))
    verdicts: dict[int, Verdict] = {count: verdict for verdict, count in named.items()}
    swaps = []
    for pair in np.flatnonzero(order < 0).tolist():
        turned = bool(by_official[pair] < 0)
        a, b = runs[first[pair]], runs[second[pair]]
        swaps.append(
            Swap(
                b if turned else a,
                a if turned else b,
                abs(float(by_official[pair])),
                -abs(float(by_rubric[pair])),
                float(p_official[pair]),
                float(p_rubric[pair]),
                float(holm_official[pair]),
                float(holm_rubric[pair]),
                verdicts[int(significant[pair])] if tested[pair] else None,
            )
        )
    agreed = tested & (order > 0)
    return Swaps(
        len(first),
        int((order == 0).sum()),
        tuple(sorted(swaps, key=_weight)),
        {verdict: int((significant[agreed] == count).sum()) for verdict, count in named.items()},
    )


def _weight(swap: Swap) -> tuple[int, float, str, str]:
    named = get_args(Verdict)
    verdict = len(named) if swap.verdict is None else named.index(swap.verdict)
    return verdict, -swap.official_difference, swap.run_a, swap.run_b
