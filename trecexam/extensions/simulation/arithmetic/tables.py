"""Judgments to drop, run by run or at random, and tables of the leaderboards without them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import chain

import numpy as np

from trecexam.extensions.simulation.arithmetic.simulation import Floats, Outcome, Place, Simulation
from trecexam.features.fill.records import Labels
from trecexam.results.table import Layout, Table, Value
from trecexam.results.text import plural
from trecexam.scores.rank_correlation import Ranks, tau_ap_columns, tau_b_columns

#: Per cent of the judgments that are removed, step by step.
STEPS = (10, 20, 30, 40, 50, 60, 70, 80, 90)
_AGREEMENT = ("tau.{}", "tau.{}.low", "tau.{}.high", "tau_ap.{}", "difference.{}")


def unique_passages(simulation: Simulation, depth: int, team_of: Mapping[str, str]) -> dict[str, list[Place]]:
    """Return run or team -> judged passages that no other has at its first `depth` ranks.

    Args:
        team_of: run -> team; a run without one is its own team.
    """
    retrieved = defaultdict[str, set[Place]](set)
    for run, rankings in simulation.rankings.items():
        retrieved[team_of.get(run, run)].update(
            (query_id, doc_id)
            for query_id, ranking in rankings.items()
            for doc_id in ranking[:depth]
            if doc_id in simulation.official.get(query_id, ())
        )
    n_teams = Counter(chain.from_iterable(retrieved.values()))
    return {name: sorted(p for p in passages if n_teams[p] == 1) for name, passages in retrieved.items()}


def left_out_tables(
    simulation: Simulation, outcomes: Mapping[str, Outcome], team_of: Mapping[str, str], min_relevant: int = 1
) -> dict[str, Table]:
    """Return each run's rank and mean without the judgments of its unique passages, and how far runs move.

    Args:
        outcomes: run or team -> the leaderboards after a drop of its `unique_passages`.
        min_relevant: from this official label on, a passage is relevant.

    Returns:
        "runs": a row per measure and run, by rank with all judgments, ties by run name. `left_out` is the run
        or its team; `unique` counts its judged passages that nobody else has, `relevant` and `filled` those
        of them that are so. `rank` (1 is best, tied runs share the best rank) and `mean` are the run's with
        all judgments ("full") and by each method; `tau` is Kendall's tau-b of the whole leaderboard with that
        on all judgments, NaN where one of them ties all runs. `map` gave the labels; `unfitted` says why none
        could be fitted.

        "shifts": a row per measure and method. `mean_shift` and `greatest_shift` are absolute differences of
        rank, `run` is the first by name that moves so far, "" where none moves; `difference` is the mean
        absolute one of the run's mean value. `tau` and `least_tau` are mean and minimum over the
        leaderboards, NaN where no tau is defined.
    """
    rows, shifts = list[tuple[Value, ...]](), list[tuple[Value, ...]]()
    runs = list(simulation.rankings)
    teams = [team_of.get(run, run) for run in runs]
    for index, measure in enumerate(map(str, simulation.measures) if runs else ()):
        boards = [np.array([*outcomes[team].boards.values()])[:, index].T for team in teams]
        means = np.array([board[row] for row, board in enumerate(boards)])
        ranks = np.array([Ranks.of(board).above[row] + 1 for row, board in enumerate(boards)])
        taus = np.array([tau_b_columns(board[:, :1], board[:, 1:]) for board in boards])
        order = np.argsort(ranks[:, 0], kind="stable")
        for row in order.tolist():
            outcome = outcomes[teams[row]]
            relevant = sum(simulation.official[q][doc_id] >= min_relevant for q, doc_id in outcome.dropped)
            counts = (len(outcome.dropped), relevant, outcome.filled)
            values = (value for side in (ranks, means, taus) for value in side[row].tolist())
            fit = (str(outcome.rule), outcome.unfitted)
            rows.append((measure, runs[row], teams[row], *counts, *values, *fit))
        for column, method in enumerate(simulation.methods):
            moves, differences = (np.abs(side[order, column + 1] - side[order, 0]) for side in (ranks, means))
            defined = [tau for tau in taus[order, column].tolist() if not math.isnan(tau)] or [math.nan]
            run = runs[order[moves == moves.max()].min()] if moves.any() else ""
            shift = (float(moves.mean()), int(moves.max()), run, float(differences.mean()))
            shifts.append((measure, method, *shift, float(np.mean(defined)), min(defined)))
    header = (
        *("official_measure", "run", "left_out", "unique", "relevant", "filled"),
        *(f"{value}.{method}" for value in ("rank", "mean") for method in ("full", *simulation.methods)),
        *(f"tau.{method}" for method in simulation.methods),
        *("map", "unfitted"),
    )
    first = ("rank.full", "rank.holes", "rank.fill", "tau.holes", "tau.fill")
    keys = ("official_measure", "judgments")
    shift_columns = ("mean_shift", "greatest_shift", "run", "difference", "tau", "least_tau")
    return {
        "runs": Table(header, tuple(rows), layout=Layout(header[:2], first, without=header[-2:])),
        "shifts": Table((*keys, *shift_columns), tuple(shifts), layout=Layout(keys)),
    }


def draw_removed(official: Labels, repeats: int = 10, seed: int = 0) -> dict[tuple[int, int], list[Place]]:
    """Draw judged passages that lose their judgments: (repeat, per cent) -> passages.

    Every judgment has the same probability. In each repeat the steps are nested: judgments removed at 10% are
    removed at 20%, too. The same seed gives the same draws.
    """
    passages = sorted((query_id, doc_id) for query_id, judged in official.items() for doc_id in judged)
    rng = np.random.default_rng(seed)
    drawn = [[passages[index] for index in rng.permutation(len(passages))] for _ in range(repeats)]
    return {
        (repeat, step): order[: round(len(passages) * step / 100)]
        for repeat, order in enumerate(drawn)
        for step in STEPS
    }


def removal_table(simulation: Simulation, outcomes: Mapping[tuple[int, int], Outcome]) -> Table:
    """Return how far leaderboards agree with that on all judgments.

    Args:
        outcomes: (repeat, per cent) -> the leaderboards after a drop that `draw_removed` drew.

    Returns:
        A row per measure and step. `n_removed` judgments go in each repeat; `filled` of them have an
        automatic label, on average; `unfitted` counts the repeats in which no rule could be fitted. For each
        method the mean of Kendall's tau-b with the leaderboard on all judgments, the range of 95% of further
        repeats, the mean of tau_AP with that leaderboard as the truth, and the mean absolute `difference` of
        the runs' means. A tau is NaN where it is undefined in every repeat: fewer than two runs, or all of
        them tied.
    """
    repeats = len(outcomes) // len(STEPS)
    rows: list[tuple[Value, ...]] = []
    for index, measure in enumerate(map(str, simulation.measures)):
        for step in STEPS:
            of_step = [outcomes[repeat, step] for repeat in range(repeats)]
            boards = np.array([[*outcome.boards.values()] for outcome in of_step])[:, :, index]
            values = (v for board in boards[:, 1:].swapaxes(0, 1) for v in _agreement(boards[0, 0], board))
            filled = sum(outcome.filled for outcome in of_step) / repeats
            unfitted = sum(outcome.unfitted is not None for outcome in of_step)
            rows.append((measure, step, len(of_step[0].dropped), filled, *values, unfitted))
    keys = ("official_measure", "removed")
    columns = (column.format(method) for method in simulation.methods for column in _AGREEMENT)
    caption = f"95% intervals: the range of a further repeat, from {plural(repeats, 'repeat')}"
    return Table(
        (*keys, "n_removed", "filled", *columns, "unfitted"),
        tuple(rows),
        layout=Layout(keys, ("tau.holes", "tau.fill"), without=("unfitted",)),
        caption=caption,
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
    says method much depends on which judgments went.
    """
    from scipy.special import stdtrit

    n = len(taus)
    if n < 2:
        return math.nan, math.nan
    mean, half = taus.mean(), stdtrit(n - 1, 0.975) * taus.std(ddof=1) * math.sqrt(1 + 1 / n)
    return max(-1.0, float(mean - half)), min(1.0, float(mean + half))
