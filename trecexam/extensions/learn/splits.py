"""Which judgments are hidden, and from whom it is found out what they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.learn.arithmetic.features import Floats
from trecexam.scores.retrieved import retrieved_weights

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Part:
    """What is hidden at once.

    Attributes:
        hidden: which pooled passages, an array a query; only judged ones.
        runs: whose ranks are looked at; None for all.
    """

    hidden: tuple[Bools, ...]
    runs: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class Split:
    """A way to hide judgments.

    Attributes:
        name: what is hidden or known, in words.
        repeats: of each, the parts in turn.
        whole: a repeat's parts hide different queries, and make one leaderboard together.
    """

    name: str
    repeats: tuple[tuple[Part, ...], ...]
    whole: bool = False


def queries_left_out(judgments: Sequence[Floats], folds: int = 10) -> Split:
    """All judgments of a query are hidden, of every `folds`-th query at once."""
    judged = [~np.isnan(of_query) for of_query in judgments]
    with_judgments = [at for at, of_query in enumerate(judged) if of_query.any()]
    parts = []
    for fold in range(min(folds, len(with_judgments))):
        out = set(with_judgments[fold::folds])
        parts.append(
            Part(tuple(known if at in out else np.zeros_like(known) for at, known in enumerate(judged)))
        )
    return Split("queries left out", (tuple(parts),), whole=True)


def all_hidden(judgments: Sequence[Floats], name: str) -> Split:
    """No judgment is known: what is learned is learned elsewhere."""
    return Split(name, ((Part(tuple(~np.isnan(of_query) for of_query in judgments)),),))


def random_share(judgments: Sequence[Floats], share: float, repeats: int, seed: int) -> Split:
    """A share of all judgments is known, drawn at random, again and again."""
    judged = [~np.isnan(of_query) for of_query in judgments]
    rng = np.random.default_rng(seed)
    drawn = tuple(
        (Part(tuple(known & (rng.random(len(known)) >= share) for known in judged)),) for _ in range(repeats)
    )
    return Split(f"{share:.0%} known at random", drawn)


def most_retrieved(judgments: Sequence[Floats], ranks: Sequence[NDArray[np.int32]], k: int) -> Split:
    """Of each query the k judged passages are known that runs have highest and most often.

    By `retrieved_weights`; of equal ones the first by id counts.
    """
    hidden = []
    for of_query, of_runs in zip(judgments, ranks, strict=True):
        judged = ~np.isnan(of_query)
        weights = retrieved_weights(of_runs, len(of_query))
        order = np.argsort(-np.where(judged, weights, -1), kind="stable")
        known = np.zeros(len(of_query), bool)
        known[order[:k]] = True
        hidden.append(judged & ~known)
    return Split(f"{k} most retrieved known", ((Part(tuple(hidden)),),))


def teams_left_out(
    judgments: Sequence[Floats], ranks: Sequence[NDArray[np.int32]], teams: Mapping[str, Sequence[int]]
) -> Split:
    """The judgments that a team alone brought in are hidden, team by team; those without any are left out.

    Args:
        teams: team -> the places of its runs among the runs.
    """
    parts = []
    for runs in teams.values():
        own = list(runs)
        hidden = []
        for of_query, of_runs in zip(judgments, ranks, strict=True):
            by_team, by_others = (
                np.bincount(rows[rows >= 0], minlength=len(of_query)) > 0
                for rows in (of_runs[own], np.delete(of_runs, own, axis=0))
            )
            hidden.append(~np.isnan(of_query) & by_team & ~by_others)
        if any(of_query.any() for of_query in hidden):
            parts.append(Part(tuple(hidden), tuple(own)))
    return Split("a team's unique passages left out", (tuple(parts),) if parts else ())


def half_of_teams(
    judgments: Sequence[Floats],
    ranks: Sequence[NDArray[np.int32]],
    teams: Mapping[str, Sequence[int]],
    repeats: int,
    seed: int,
) -> Split:
    """Only what half of the teams brought in is known; the other half's runs are looked at.

    Args:
        teams: team -> the places of its runs among the runs.
    """
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(repeats if len(teams) > 1 else 0):
        names = [list(teams)[at] for at in rng.permutation(len(teams))]
        pooled = [run for name in names[: (len(names) + 1) // 2] for run in teams[name]]
        unseen = tuple(sorted(run for name in names[(len(names) + 1) // 2 :] for run in teams[name]))
        hidden = []
        for of_query, of_runs in zip(judgments, ranks, strict=True):
            rows = of_runs[pooled]
            brought = np.bincount(rows[rows >= 0], minlength=len(of_query)) > 0
            hidden.append(~np.isnan(of_query) & ~brought)
        drawn.append((Part(tuple(hidden), unseen),))
    return Split("half of the teams judged", tuple(drawn))
