"""Random removal: leaderboards on fewer and fewer judgments, with holes and filled.

See `simulation.py` beside this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trecexam.extensions.simulation.arithmetic.simulation import Floats, Outcome, Simulation
from trecexam.scores.rank_correlation.ranks import Ranks
from trecexam.scores.rank_correlation.tau import tau_ap_columns, tau_b_columns

#: Per cent of the judgments that are removed, step by step.
STEPS = (10, 20, 30, 40, 50, 60, 70, 80, 90)


@dataclass(frozen=True)
class TauAgreement:
    """Agreement of leaderboards on fewer judgments with that on all, over the repeats of a step.

    Attributes:
        tau: mean of Kendall's tau-b over the repeats, -1..1.
        low, high: between them tau of another repeat lies with 95%: Student's t prediction interval, mean -+
            t s sqrt(1 + 1/n) for n repeats with standard deviation s, cut to -1..1 (Hahn & Meeker,
            "Statistical Intervals", 1991, ch. 4). Runs, queries and judgments are fixed: it says how
            much depends on which judgments went. NaN for fewer than two repeats.
        tau_ap: mean of tau_AP with the full leaderboard as the truth, -1..1.
        difference: mean over repeats and runs of the absolute difference of the run's mean value.

    A tau is NaN where it is undefined in every repeat: fewer than two runs, or all of them tied.
    """

    tau: float
    low: float
    high: float
    tau_ap: float
    difference: float


@dataclass(frozen=True)
class Removed:
    """A step and an official measure.

    Attributes:
        measure: as ir_measures prints it.
        removed: per cent of the judgments.
        n_removed: how many judgments that are, in each repeat.
        filled: how many of them have an automatic label; mean over the repeats.
        unfitted: in how many repeats no rule could be fitted, so that the identity stood in.
        by: "holes" without the removed judgments, "fill" with these filled, and the other methods.
    """

    measure: str
    removed: int
    n_removed: int
    filled: float
    unfitted: int
    by: Mapping[str, TauAgreement]


def remove(
    simulation: Simulation,
    repeats: int = 10,
    seed: int = 0,
    steps: Sequence[int] = STEPS,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Removed, ...]:
    """Removes shares of all judgments at random.

    Every judgment is as likely to go as any other. In each repeat the steps are nested: what is gone after
    10% is gone after 20% too.

    Args:
        repeats: how often judgments are drawn; at least 1.
        seed: of the random numbers; the same seed gives the same draws, whatever the labels.
        steps: per cent of the judgments, 0..100.
        progress: called with how many (repeat, step) are done, and of how many.

    Returns:
        Measure by measure, step by step.
    """
    passages = simulation.places
    rng = np.random.default_rng(seed)
    outcomes: dict[int, list[Outcome]] = {step: [] for step in steps}
    for repeat in range(repeats):
        order = rng.permutation(len(passages)).tolist()
        for index, step in enumerate(steps, 1):
            removed = order[: round(len(passages) * step / 100)]
            outcomes[step].append(simulation.drop([passages[i] for i in removed]))
            if progress:
                progress(repeat * len(steps) + index, repeats * len(steps))
    return tuple(
        Removed(
            measure,
            step,
            outcomes[step][0].dropped,
            sum(outcome.filled for outcome in outcomes[step]) / repeats,
            sum(outcome.unfitted is not None for outcome in outcomes[step]),
            {
                how: _agreement(
                    simulation.full[index],
                    np.array([outcome.boards[how][index] for outcome in outcomes[step]]),
                )
                for how in outcomes[step][0].boards
            },
        )
        for index, measure in enumerate(simulation.measures)
        for step in steps
    )


def _agreement(full: Floats, boards: Floats) -> TauAgreement:
    """The agreement of leaderboards of shape (repeats, runs)."""
    taus = tau_b_columns(full[:, None], boards.T)
    of_full = Ranks.of(full[:, None])
    aps = np.array([tau_ap_columns(of_full, Ranks.of(board[:, None]))[0] for board in boards])
    aps = aps[~np.isnan(taus)]
    taus = taus[~np.isnan(taus)]
    difference = float(np.abs(boards - full).mean()) if boards.size else 0.0
    if not taus.size:
        return TauAgreement(*(float("nan"),) * 4, difference)
    return TauAgreement(float(taus.mean()), *prediction(taus), float(aps.mean()), difference)


def prediction(taus: Floats) -> tuple[float, float]:
    """The 95% prediction interval of another repeat's tau, see `TauAgreement`; NaN for fewer than two."""
    from scipy.special import stdtrit

    n = len(taus)
    if n < 2:
        return math.nan, math.nan
    mean, half = taus.mean(), stdtrit(n - 1, 0.975) * taus.std(ddof=1) * math.sqrt(1 + 1 / n)
    return max(-1.0, float(mean - half)), min(1.0, float(mean + half))
