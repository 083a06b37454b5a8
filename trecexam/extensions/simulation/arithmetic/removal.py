"""Random removal: leaderboards on fewer and fewer judgments, with holes and filled.

See `simulation.py` beside this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from trecexam.extensions.simulation.arithmetic.simulation import Floats, Outcome, Simulation
from trecexam.results.table import Layout, Table, Value
from trecexam.results.text import plural
from trecexam.scores.rank_correlation import Ranks, tau_ap_columns, tau_b_columns

#: Per cent of the judgments that are removed, step by step.
STEPS = (10, 20, 30, 40, 50, 60, 70, 80, 90)
_KEYS = ("official_measure", "removed")
_AGREEMENT = ("tau.{}", "tau.{}.low", "tau.{}.high", "tau_ap.{}", "difference.{}")


def remove(
    simulation: Simulation,
    repeats: int = 10,
    seed: int = 0,
    steps: Sequence[int] = STEPS,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Table:
    """Remove shares of all judgments at random.

    Every judgment has the same probability. In each repeat the steps are nested: judgments removed at 10% are
    removed at 20%, too.

    Args:
        repeats: how often judgments are drawn; at least 1.
        seed: of the random numbers; the same seed gives the same draws, whatever the labels.
        steps: per cent of the judgments, 0..100.
        progress: called with ((repeat, step) pairs done, in all).

    Returns:
        A row per measure and step. `n_removed` judgments go in each repeat; `filled` of them have an
        automatic label, on average; `unfitted` counts the repeats in which no rule could be fitted. For each
        method the mean of Kendall's tau-b with the leaderboard on all judgments, the range of 95% of further
        repeats, the mean of tau_AP with that leaderboard as the truth, and the mean absolute `difference` of
        the runs' means. A tau is NaN where it is undefined in every repeat: fewer than two runs, or all of
        them tied.
    """
    passages = simulation.places
    rng = np.random.default_rng(seed)
    n_removed = {step: round(len(passages) * step / 100) for step in steps}
    outcomes: dict[int, list[Outcome]] = {step: [] for step in steps}
    for repeat in range(repeats):
        order = rng.permutation(len(passages)).tolist()
        for index, (step, n) in enumerate(n_removed.items(), 1):
            outcomes[step].append(simulation.drop([passages[i] for i in order[:n]]))
            progress(repeat * len(steps) + index, repeats * len(steps))
    rows: list[tuple[Value, ...]] = []
    for index, (measure, full) in enumerate(zip(simulation.measures, simulation.full, strict=True)):
        for step, of_step in outcomes.items():
            filled = sum(outcome.filled for outcome in of_step) / repeats
            unfitted = sum(outcome.unfitted is not None for outcome in of_step)
            boards = (np.array([each.boards[how][index] for each in of_step]) for how in simulation.methods)
            values = (value for of_method in boards for value in _agreement(full, of_method))
            rows.append((measure, step, n_removed[step], filled, *values, unfitted))
    columns = (column.format(how) for how in simulation.methods for column in _AGREEMENT)
    interval = f"95% range of a further repeat, from {plural(repeats, 'repeat')}"
    return Table(
        (*_KEYS, "n_removed", "filled", *columns, "unfitted"),
        tuple(rows),
        layout=Layout(_KEYS, ("tau.holes", "tau.fill"), without=("unfitted",), interval=interval),
    )


def _agreement(full: Floats, boards: Floats) -> tuple[float, float, float, float, float]:
    """Return the values of `_AGREEMENT` of leaderboards of shape (repeats, runs)."""
    taus = tau_b_columns(full[:, None], boards.T)
    aps = tau_ap_columns(Ranks.of(full[:, None]), Ranks.of(boards.T))[~np.isnan(taus)]
    taus = taus[~np.isnan(taus)]
    difference = float(np.abs(boards - full).mean()) if boards.size else 0.0
    if not taus.size:
        return math.nan, math.nan, math.nan, math.nan, difference
    return float(taus.mean()), *prediction(taus), float(aps.mean()), difference


def prediction(taus: Floats) -> tuple[float, float]:
    """Return the range in which tau of another repeat lies with 95%; NaN for fewer than two repeats.

    Student's t prediction interval, mean -+ t s sqrt(1 + 1/n) for n repeats with standard deviation s, cut to
    -1..1 (Hahn & Meeker, "Statistical Intervals", 1991, ch. 4). Runs, queries and judgments are fixed: it
    says how much depends on which judgments went.
    """
    from scipy.special import stdtrit

    n = len(taus)
    if n < 2:
        return math.nan, math.nan
    mean, half = taus.mean(), stdtrit(n - 1, 0.975) * taus.std(ddof=1) * math.sqrt(1 + 1 / n)
    return max(-1.0, float(mean - half)), min(1.0, float(mean + half))
