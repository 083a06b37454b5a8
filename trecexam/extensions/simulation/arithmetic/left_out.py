"""Leave one run out: ranks of runs without the judgments that only they contributed.

See `simulation.py` beside this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trecexam.extensions.simulation.arithmetic.simulation import Place, Simulation, ranks
from trecexam.features.fill.arithmetic.scale_map import ScaleMap
from trecexam.features.holes.arithmetic import contributed_alone
from trecexam.scores.rank_correlation.tau import tau_b_columns


@dataclass(frozen=True)
class RankAndMean:
    """A run's rank (1 is best, tied runs share the best rank) and mean, and its leaderboard.

    Attributes:
        tau: Kendall's tau-b of the whole leaderboard with that on all judgments, -1..1; NaN where one of
            them ties all runs.
    """

    rank: int
    mean: float
    tau: float


@dataclass(frozen=True)
class LeftOut:
    """A run and an official measure, without the judgments that only this run contributed.

    Attributes:
        measure: as ir_measures prints it.
        run: its name.
        left_out: the run that was left out, or its team.
        unique: judged passages that nobody else has in the first ranks; their judgments were dropped.
        relevant: how many of these are judged relevant.
        filled: how many of these have an automatic label.
        by: "full" with all judgments, "holes" without the dropped ones, "fill" with these filled, and the
            other methods.
        rule: the rule that mapped automatic labels.
        unfitted: as in `trecexam.extensions.simulation.arithmetic.simulation.Outcome`.
    """

    measure: str
    run: str
    left_out: str
    unique: int
    relevant: int
    filled: int
    by: Mapping[str, RankAndMean]
    rule: ScaleMap
    unfitted: str | None


@dataclass(frozen=True)
class Shift:
    """Changes of all runs' ranks and means, each without its own judgments.

    Attributes:
        mean: mean absolute difference of rank.
        greatest: the greatest one.
        run: the run that moves so far; the first by name of several, "" where none moves.
        difference: mean absolute difference of the run's mean value.
        tau, least_tau: mean and minimum of the leaderboards' tau-b; NaN where no tau is defined.
    """

    mean: float
    greatest: int
    run: str
    difference: float
    tau: float
    least_tau: float


def leave_out(
    simulation: Simulation,
    depth: int,
    teams: Mapping[str, str] | None = None,
    min_relevant: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[LeftOut, ...]:
    """Leaves out the judgments of passages that only one run or team retrieved, for each in turn.

    Args:
        depth: a passage is had by a run that has it among its first `depth` for that query.
        teams: run -> team; a run without one is its own team. None: each run by itself.
        min_relevant: from this official label on, a passage is relevant.
        progress: called with how many are done, and of how many.

    Returns:
        Measure by measure, by rank with all judgments, ties by run name.
    """
    team = {run: (teams or {}).get(run, run) for run in simulation.runs}
    members: dict[str, list[int]] = {}
    for row, run in enumerate(simulation.runs):
        members.setdefault(team[run], []).append(row)
    unique = _unique(simulation, members, depth)
    left_out: list[LeftOut] = []
    for done, (name, rows) in enumerate(members.items(), 1):
        outcome = simulation.drop(unique[name])
        relevant = sum(simulation.label(passage) >= min_relevant for passage in unique[name])
        for index, measure in enumerate(simulation.measures):
            full = simulation.full[index]
            boards = {how: means[index] for how, means in outcome.boards.items()}
            standings = {
                how: (ranks(board), board, float(tau_b_columns(full[:, None], board[:, None])[0]))
                for how, board in {"full": full, **boards}.items()
            }
            left_out += (
                LeftOut(
                    measure,
                    simulation.runs[row],
                    name,
                    outcome.dropped,
                    relevant,
                    outcome.filled,
                    {
                        how: RankAndMean(int(rank[row]), float(board[row]), tau)
                        for how, (rank, board, tau) in standings.items()
                    },
                    outcome.rule,
                    outcome.unfitted,
                )
                for row in rows
            )
        if progress:
            progress(done, len(members))
    order = {measure: index for index, measure in enumerate(simulation.measures)}
    return tuple(sorted(left_out, key=lambda entry: (order[entry.measure], entry.by["full"].rank, entry.run)))


def shift(rows: Sequence[LeftOut], method: str) -> Shift:
    """Summarises the changes in these rows, with holes or filled.

    Args:
        rows: of one measure.
        method: a key of `LeftOut.by`.
    """
    pairs = [(row.by["full"], row.by[method]) for row in rows]
    moves = {row.run: abs(row.by[method].rank - row.by["full"].rank) for row in rows}
    greatest = max(moves.values(), default=0)
    taus = [now.tau for _, now in pairs if not np.isnan(now.tau)]
    return Shift(
        sum(moves.values()) / len(moves) if moves else 0.0,
        greatest,
        min((run for run, move in moves.items() if move == greatest), default="") if greatest else "",
        sum(abs(now.mean - full.mean) for full, now in pairs) / len(pairs) if pairs else 0.0,
        sum(taus) / len(taus) if taus else float("nan"),
        min(taus, default=float("nan")),
    )


def _unique(
    simulation: Simulation, members: Mapping[str, Sequence[int]], depth: int
) -> dict[str, list[Place]]:
    """team -> the judged passages that only it retrieved."""
    judged: dict[str, set[str]] = {}
    for query_id, doc_id in simulation.places:
        judged.setdefault(query_id, set()).add(doc_id)
    unique: dict[str, list[Place]] = {name: [] for name in members}
    for query_id, docs in judged.items():
        rankings = {
            name: [simulation.first(simulation.runs[row], query_id, depth) for row in rows]
            for name, rows in members.items()
        }
        for name, doc_ids in contributed_alone(rankings).items():
            unique[name] += ((query_id, doc_id) for doc_id in sorted(doc_ids & docs))
    return unique
