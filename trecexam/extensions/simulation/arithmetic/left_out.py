"""Leave one run out: ranks of runs without the judgments that only they contributed.

See `simulation.py` beside this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from trecexam.extensions.simulation.arithmetic.simulation import Place, Simulation, ranks
from trecexam.results.table import Layout, Table
from trecexam.scores.rank_correlation import tau_b_columns

_KEYS = ("official_measure", "run")


def leave_out(
    simulation: Simulation,
    depth: int,
    teams: Mapping[str, str] | None = None,
    min_relevant: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Table:
    """Leave out the judgments of passages that only one run or team retrieved, for each in turn.

    Args:
        depth: a passage is had by a run that has it among its first `depth` for that query.
        teams: run -> team; a run without one is its own team. None: each run by itself.
        min_relevant: from this official label on, a passage is relevant.
        progress: called with how many are done, and of how many.

    Returns:
        A row per measure and run, by rank with all judgments, ties by run name. `left_out` is the run or its
        team; `unique` counts its judged passages that nobody else has, `relevant` and `filled` those of them
        that are so. `rank` (1 is best, tied runs share the best rank) and `mean` are the run's with all
        judgments ("full") and by each method; `tau` is Kendall's tau-b of the whole leaderboard with that on
        all judgments, NaN where one of them ties all runs. `map` gave the labels; `unfitted` says why none
        could be fitted.
    """
    team = {run: (teams or {}).get(run, run) for run in simulation.runs}
    members: dict[str, list[int]] = {}
    for row, run in enumerate(simulation.runs):
        members.setdefault(team[run], []).append(row)
    unique = _unique(simulation, members, depth)
    rows: list[tuple[Any, ...]] = []
    for done, (name, of_team) in enumerate(members.items(), 1):
        outcome = simulation.drop(unique[name])
        relevant = sum(simulation.official[q][doc_id] >= min_relevant for q, doc_id in unique[name])
        for index, measure in enumerate(simulation.measures):
            full = simulation.full[index]
            boards = [full, *(means[index] for means in outcome.boards.values())]
            ranked = [ranks(board) for board in boards]
            taus = [float(tau_b_columns(full[:, None], board[:, None])[0]) for board in boards[1:]]
            rows += [
                (
                    *(measure, simulation.runs[row], name, len(unique[name]), relevant, outcome.filled),
                    *(int(of_board[row]) for of_board in ranked),
                    *(float(board[row]) for board in boards),
                    *taus,
                    *(str(outcome.rule), outcome.unfitted),
                )
                for row in of_team
            ]
        if progress:
            progress(done, len(members))
    order = {measure: index for index, measure in enumerate(simulation.measures)}
    full_rank = 6
    rows.sort(key=lambda row: (order[row[0]], row[full_rank], row[1]))
    standings = ("full", *simulation.methods)
    return Table(
        (
            *(*_KEYS, "left_out", "unique", "relevant", "filled"),
            *(f"{what}.{how}" for what in ("rank", "mean") for how in standings),
            *(f"tau.{how}" for how in simulation.methods),
            *("map", "unfitted"),
        ),
        tuple(rows),
        layout=Layout(
            _KEYS,
            ("rank.full", "rank.holes", "rank.fill", "tau.holes", "tau.fill"),
            without=("map", "unfitted"),
        ),
    )


def shifts(left_out: Table, measures: Sequence[str], methods: Sequence[str]) -> Table:
    """Return how far runs move, each without its own judgments: a row per measure and method.

    `mean_shift` and `greatest_shift` are absolute differences of rank, `run` is the first by name that moves
    so far, "" where none moves; `difference` is the mean absolute one of the run's mean value. `tau` and
    `least_tau` are mean and minimum over the leaderboards, NaN where no tau is defined.

    Args:
        left_out: what `leave_out` gives.
    """
    rows = []
    for measure in measures:
        of_measure: list[dict[str, Any]] = [row for row in left_out if row["official_measure"] == measure]
        for how in methods:
            moves = {row["run"]: abs(row[f"rank.{how}"] - row["rank.full"]) for row in of_measure}
            greatest = max(moves.values(), default=0)
            first = min((run for run, move in moves.items() if move == greatest), default="")
            differences = [abs(row[f"mean.{how}"] - row["mean.full"]) for row in of_measure]
            taus = [tau for row in of_measure if not np.isnan(tau := row[f"tau.{how}"])]
            rows.append(
                (
                    *(measure, how, sum(moves.values()) / len(moves) if moves else 0.0, greatest),
                    first if greatest else "",
                    sum(differences) / len(differences) if differences else 0.0,
                    sum(taus) / len(taus) if taus else float("nan"),
                    min(taus, default=float("nan")),
                )
            )
    header = ("mean_shift", "greatest_shift", "run", "difference", "tau", "least_tau")
    keys = ("official_measure", "judgments")
    return Table((*keys, *header), tuple(rows), layout=Layout(keys))


def _unique(
    simulation: Simulation, members: Mapping[str, Sequence[int]], depth: int
) -> dict[str, list[Place]]:
    """Return team -> the judged passages that it alone retrieved."""
    rankings = [simulation.rankings[run] for run in simulation.runs]
    unique: dict[str, list[Place]] = {name: [] for name in members}
    for query_id in simulation.query_ids:
        docs = simulation.official[query_id].keys()
        found = {
            name: docs & {doc for row in rows for doc in rankings[row].get(query_id, ())[:depth]}
            for name, rows in members.items()
        }
        n_teams = Counter(doc_id for of_team in found.values() for doc_id in of_team)
        for name, of_team in found.items():
            unique[name] += ((query_id, doc_id) for doc_id in sorted(of_team) if n_teams[doc_id] == 1)
    return unique
