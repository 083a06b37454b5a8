"""Leave one run out: ranks of runs without the judgments that only they contributed.

See `simulation.py` beside this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.simulation.arithmetic.simulation import Floats, Place, Simulation, ranks
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
        full, holes, fill: its standing with all judgments, without the dropped ones, with these filled.
        rule: the rule that mapped automatic labels.
        unfitted: as in `trecexam.extensions.simulation.arithmetic.simulation.Outcome`.
        others: its standing by the other ways, each under its name.
    """

    measure: str
    run: str
    left_out: str
    unique: int
    relevant: int
    filled: int
    full: RankAndMean
    holes: RankAndMean
    fill: RankAndMean
    rule: ScaleMap
    unfitted: str | None
    others: Mapping[str, RankAndMean] = field(default_factory=dict)

    def by(self, method: str) -> RankAndMean:
        """Its rank and mean with "holes", with "fill", or with another method."""
        return {"holes": self.holes, "fill": self.fill, **self.others}[method]


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
            other_means = [means[index] for means in outcome.others.values()]
            boards = (full, outcome.holes[index], outcome.fill[index], *other_means)
            at = [_ranked(board, full) for board in boards]
            for row in rows:
                full_rank, holes, fill, *rest = (
                    RankAndMean(int(rank[row]), float(board[row]), tau)
                    for board, (rank, tau) in zip(boards, at, strict=True)
                )
                left_out.append(
                    LeftOut(
                        measure,
                        simulation.runs[row],
                        name,
                        outcome.dropped,
                        relevant,
                        outcome.filled,
                        full_rank,
                        holes,
                        fill,
                        outcome.rule,
                        outcome.unfitted,
                        dict(zip(outcome.others, rest, strict=True)),
                    )
                )
        if progress:
            progress(done, len(members))
    order = {measure: index for index, measure in enumerate(simulation.measures)}
    return tuple(sorted(left_out, key=lambda entry: (order[entry.measure], entry.full.rank, entry.run)))


def shift(rows: Sequence[LeftOut], method: str) -> Shift:
    """Summarises the changes in these rows, with holes or filled.

    Args:
        rows: of one measure.
        method: as of `LeftOut.by`.
    """
    pairs = [(row, row.by(method)) for row in rows]
    moves = {row.run: abs(now.rank - row.full.rank) for row, now in pairs}
    greatest = max(moves.values(), default=0)
    taus = [now.tau for _, now in pairs if not np.isnan(now.tau)]
    return Shift(
        sum(moves.values()) / len(moves) if moves else 0.0,
        greatest,
        min((run for run, move in moves.items() if move == greatest), default="") if greatest else "",
        sum(abs(now.mean - row.full.mean) for row, now in pairs) / len(pairs) if pairs else 0.0,
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


def _ranked(board: Floats, full: Floats) -> tuple[NDArray[np.int64], float]:
    """Ranks of all runs, and tau-b with the full leaderboard."""
    return ranks(board), float(tau_b_columns(full[:, None], board[:, None])[0])
