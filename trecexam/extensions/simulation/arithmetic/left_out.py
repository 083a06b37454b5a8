"""Leave one run out: ranks of runs without the judgments that only they contributed.

See `simulation.py` beside this.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from trecexam.extensions.simulation.arithmetic.simulation import Place, Simulation
from trecexam.results.table import Layout, Table, Value
from trecexam.scores.rank_correlation import Ranks, tau_b_columns

_KEYS = ("official_measure", "run")


def leave_out(
    simulation: Simulation,
    depth: int,
    teams: Mapping[str, str] | None = None,
    min_relevant: int = 1,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Table:
    """Leave out the judgments of passages that only one run or team retrieved, for each in turn.

    Args:
        depth: passages at the first `depth` ranks of a run count as its own.
        teams: run -> team; a run without one is its own team. None: each run by itself.
        min_relevant: from this official label on, a passage is relevant.
        progress: called with (runs or teams done, in all).

    Returns:
        A row per measure and run, by rank with all judgments, ties by run name. `left_out` is the run or its
        team; `unique` counts its judged passages that nobody else has, `relevant` and `filled` those of them
        that are so. `rank` (1 is best, tied runs share the best rank) and `mean` are the run's with all
        judgments ("full") and by each method; `tau` is Kendall's tau-b of the whole leaderboard with that on
        all judgments, NaN where one of them ties all runs. `map` gave the labels; `unfitted` says why none
        could be fitted.
    """
    members: dict[str, list[int]] = {}
    for row, run in enumerate(simulation.runs):
        members.setdefault((teams or {}).get(run, run), []).append(row)
    unique = _unique(simulation, members, depth)
    rows: list[tuple[Any, ...]] = []
    for done, (name, passages) in enumerate(unique.items(), 1):
        outcome = simulation.drop(passages)
        relevant = sum(simulation.official[q][doc_id] >= min_relevant for q, doc_id in passages)
        counts = (len(passages), relevant, outcome.filled)
        for index, (measure, full) in enumerate(zip(simulation.measures, simulation.full, strict=True)):
            boards = np.array([full, *(means[index] for means in outcome.boards.values())]).T
            ranks = Ranks.of(boards).above + 1
            taus = tau_b_columns(full[:, None], boards[:, 1:]).tolist()
            for row in members[name]:
                values = (*ranks[row].tolist(), *boards[row].tolist(), *taus)
                fit = (str(outcome.rule), outcome.unfitted)
                rows.append((measure, simulation.runs[row], name, *counts, *values, *fit))
        progress(done, len(members))
    standings = ("full", *simulation.methods)
    header = (
        *(*_KEYS, "left_out", "unique", "relevant", "filled"),
        *(f"{what}.{how}" for what in ("rank", "mean") for how in standings),
        *(f"tau.{how}" for how in simulation.methods),
        *("map", "unfitted"),
    )
    full_rank = header.index("rank.full")
    rows.sort(key=lambda row: (simulation.measures.index(row[0]), row[full_rank], row[1]))
    first = ("rank.full", "rank.holes", "rank.fill", "tau.holes", "tau.fill")
    return Table(header, tuple(rows), layout=Layout(_KEYS, first, without=("map", "unfitted")))


def shifts(left_out: Table, methods: Sequence[str]) -> Table:
    """Return how far runs move, each without its own judgments: a row per measure and method.

    `mean_shift` and `greatest_shift` are absolute differences of rank, `run` is the first by name that moves
    so far, "" where none moves; `difference` is the mean absolute one of the run's mean value. `tau` and
    `least_tau` are mean and minimum over the leaderboards, NaN where no tau is defined.

    Args:
        left_out: what `leave_out` gives.
    """
    rows: list[tuple[Value, ...]] = []
    for (measure,), runs in left_out.grouped("official_measure"):
        for how in methods:
            moves = np.abs(np.subtract(runs[f"rank.{how}"], runs["rank.full"]))
            differences = np.abs(np.subtract(runs[f"mean.{how}"], runs["mean.full"]))
            greatest = int(moves.max())
            run = min(run for run, move in zip(runs["run"], moves, strict=True) if move == greatest)
            taus = [tau for tau in runs[f"tau.{how}"] if not np.isnan(tau)] or [math.nan]
            shift = (float(moves.mean()), greatest, run if greatest else "", float(differences.mean()))
            rows.append((measure, how, *shift, float(np.mean(taus)), min(taus)))
    header = ("mean_shift", "greatest_shift", "run", "difference", "tau", "least_tau")
    keys = ("official_measure", "judgments")
    return Table((*keys, *header), tuple(rows), layout=Layout(keys))


def _unique(
    simulation: Simulation, members: Mapping[str, Sequence[int]], depth: int
) -> dict[str, list[Place]]:
    """Return team -> the judged passages that it alone retrieved."""
    rankings = [simulation.rankings[run] for run in simulation.runs]
    retrieved = {
        name: {
            (query_id, doc_id)
            for query_id, judged in simulation.official.items()
            for row in rows
            for doc_id in rankings[row].get(query_id, ())[:depth]
            if doc_id in judged
        }
        for name, rows in members.items()
    }
    n_teams = Counter(chain.from_iterable(retrieved.values()))
    return {name: sorted(p for p in passages if n_teams[p] == 1) for name, passages in retrieved.items()}
