"""Whether choices that were made on the queries of a benchmark hold on queries that had no part in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from trecexam.extensions.learn.arithmetic.features import Floats
from trecexam.extensions.learn.arithmetic.learning import fit, predict
from trecexam.extensions.learn.arithmetic.ndcg import ndcg
from trecexam.extensions.learn.arithmetic.pooled import PooledQueryToLearn
from trecexam.extensions.learn.arithmetic.process import KERNELS, Kernel
from trecexam.extensions.learn.arithmetic.steps import C
from trecexam.extensions.learn.cross_validation import CrossValidation, K
from trecexam.extensions.learn.splits import Part, Split, most_retrieved, random_share
from trecexam.scores.correlation import correlate
from trecexam.scores.kappa import kappa

Queries = Sequence[PooledQueryToLearn]


@dataclass(frozen=True)
class Choice:
    """What could have been chosen otherwise.

    Attributes:
        columns: of the features.
        kernels: what is chosen among by likelihood.
        c: of the regressions.
    """

    columns: tuple[int, ...]
    kernels: tuple[Kernel, ...] = KERNELS
    c: float = C

    def of(self, queries: Queries) -> list[PooledQueryToLearn]:
        """The queries with these features alone."""
        return [
            replace(q, passages=replace(q.passages, features=q.passages.features[:, list(self.columns)]))
            for q in queries
        ]


@dataclass(frozen=True)
class Nested:
    """Figures of queries whose judgments had no part in the choice, a draw of halves each.

    Attributes:
        kappa: 10% known at random.
        tau: most retrieved passages known of a query -> Kendall's tau over all queries.
        half_kappa, half_tau: the same of a half of the queries alone, a half each.
        chosen: names of what was chosen, for kappa and for tau, a half each.
    """

    kappa: tuple[float, ...]
    tau: Mapping[int, tuple[float, ...]]
    half_kappa: tuple[float, ...]
    half_tau: Mapping[int, tuple[float, ...]]
    chosen: tuple[tuple[str, str], ...]


def splits_of(queries: Queries, top: Sequence[int]) -> list[Split]:
    judgments, ranks = [q.judgments for q in queries], [q.ranks for q in queries]
    return [random_share(judgments, 0.1, 3, 0), *(most_retrieved(judgments, ranks, k) for k in top)]


def nested(queries: Queries, choices: Mapping[str, Choice], min_relevant: int, draws: int) -> Nested:
    """Halves of the queries are drawn; on each the choice that is best there is made, for the other half.

    Of the leaderboard over all queries each half's gains are by the choice that the other half made, fitted
    on the known judgments of both.
    """
    top = (5, 10)
    splits = splits_of(queries, top)
    everywhere = {name: [_filled(choice, queries, s) for s in splits] for name, choice in choices.items()}
    official = _board(queries, [np.nan_to_num(q.judgments) for q in queries])
    rng = np.random.default_rng(0)
    kappas: list[float] = []
    taus: dict[int, list[float]] = {k: [] for k in top}
    half_kappas: list[float] = []
    half_taus: dict[int, list[float]] = {k: [] for k in top}
    chosen: list[tuple[str, str]] = []
    for _ in range(draws):
        order = rng.permutation(len(queries))
        halves = [sorted(order[: len(order) // 2].tolist()), sorted(order[len(order) // 2 :].tolist())]
        figures = [
            {
                name: _figures(choice, [queries[at] for at in half], min_relevant, top)
                for name, choice in choices.items()
            }
            for half in halves
        ]
        best = [_best(of_half) for of_half in figures]
        chosen += best
        for half in (0, 1):
            by_kappa, by_tau = best[1 - half]
            half_kappas.append(figures[half][by_kappa][0])
            for k, tau in zip(top, figures[half][by_tau][1:], strict=True):
                half_taus[k].append(tau)
        choice_of = {at: best[1 - half] for half in (0, 1) for at in halves[half]}
        tables = []
        for repeat, (part,) in enumerate(splits[0].repeats):
            labels = [everywhere[choice_of[at][0]][0][repeat][1][at] for at in range(len(queries))]
            tables.append(kappa(_table(queries, labels, part, min_relevant)).value)
        kappas.append(float(np.mean(tables)))
        for number, k in enumerate(top, 1):
            gains = [everywhere[choice_of[at][1]][number][0][0][at] for at in range(len(queries))]
            taus[k].append(correlate(_board(queries, gains), official, resamples=0).kendall_tau)
    return Nested(
        tuple(kappas),
        {k: tuple(values) for k, values in taus.items()},
        tuple(half_kappas),
        {k: tuple(values) for k, values in half_taus.items()},
        tuple(chosen),
    )


def _best(figures: Mapping[str, Sequence[float]]) -> tuple[str, str]:
    """The choices with the greatest kappa, and with the greatest taus."""
    return (
        max(figures, key=lambda name: figures[name][0]),
        max(figures, key=lambda name: sum(figures[name][1:])),
    )


def _figures(choice: Choice, queries: Queries, min_relevant: int, top: Sequence[int]) -> list[float]:
    """Kappa at 10% known, and tau for each of `top`, of these queries alone."""
    validation = CrossValidation(
        choice.of(queries), min_relevant, resamples=0, kernels=choice.kernels, c=choice.c
    )
    rows = [validation.rows(split)[0] for split in splits_of(queries, top)]
    return [rows[0].kappa.value, *(row.tau.value for row in rows[1:])]


def _filled(choice: Choice, queries: Queries, split: Split) -> list[tuple[list[Floats], list[Floats]]]:
    """Gains and labels of each query, for each repeat."""
    filled = []
    for (part,) in split.repeats:
        seen = [q.hiding(hide).passages for q, hide in zip(choice.of(queries), part.hidden, strict=True)]
        learned = fit(seen, choice.kernels, choice.c)
        predictions = [predict(learned, passages) for passages in seen]
        filled.append(([p.gains for p in predictions], [p.labels for p in predictions]))
    return filled


def _table(queries: Queries, labels: Sequence[Floats], part: Part, min_relevant: int) -> np.ndarray:
    tables = np.zeros((len(queries), 2, 2), np.int64)
    for at, (query, of_query, hide) in enumerate(zip(queries, labels, part.hidden, strict=True)):
        theirs, ours = (side[hide] >= min_relevant for side in (query.judgments, of_query))
        tables[at] = np.bincount(2 * theirs.astype(int) + ours, minlength=4).reshape(2, 2)
    return tables


def _board(queries: Queries, gains: Sequence[Floats]) -> Floats:
    return np.column_stack(
        [ndcg(q.ranks, of_query, K, q.elsewhere) for q, of_query in zip(queries, gains, strict=True)]
    )
