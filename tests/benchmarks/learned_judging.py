# ruff: noqa: E501
"""What to judge next, simulated on collections with complete judgments: whether claims are settled correctly and early."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from learned_collections import (
    RANDOM,
    SHALLOW,
    TEN,
    TOP,
    Collection,
    K,
    Setting,
    board,
    collection,
    judged_alone,
    knowing,
    ranks_of,
    tau,
    true_scores,
)

from trecexam.extensions.learn.arithmetic.learning import fit
from trecexam.extensions.learn.arithmetic.passages import Bools, Floats, QueryPassages
from trecexam.extensions.learn.arithmetic.scores import expected_scores
from trecexam.extensions.learn.arithmetic.settling import SURE, Pair, Standing, standing
from trecexam.extensions.learn.judging_order import RANDOM_SHARE, judging_rounds
from trecexam.scores.retrieved import retrieved_weights

STEPS = (1, 2, 3, 5, 10, 20)
PLANS = ("plan", "two runs", "all runs")
ORDERS = ("retrieved", "mtc", "move to front", "depth")
Queries = Sequence[QueryPassages]
Cells = Iterator[tuple[str, Callable[[], Any]]]
Rows = Mapping[str, Any]


def settle_cells(work: Path, draws: int) -> Cells:
    """Of all pairs of runs the probability that is said, and whether the first is better."""
    for setting in SHALLOW:
        for design in (*TOP, *RANDOM[:3]):
            for draw in range(draws):
                yield f"{setting}|{design}|{draw}", partial(_said, work, setting, design, draw)


def _said(work: Path, setting: Setting, design: str, draw: int) -> Any:
    of = collection(work, setting)
    queries = _two_thirds(of, draw)
    means = true_scores(queries, of.relevant)[0].mean(axis=1)
    first, second = np.triu_indices(len(means), 1)
    turned = np.random.default_rng(draw).random(len(first)) < 0.5
    first, second = np.where(turned, second, first), np.where(turned, first, second)
    try:
        known = _standing(judged_alone(queries, design, draw))
    except ValueError:
        return None
    ranks = ranks_of(known.mean)
    drawn = known.draw()
    five, true_five = (np.argsort(-of_runs, kind="stable")[:5] for of_runs in (known.mean, means))
    inside = np.isin(np.arange(len(means)), five)
    return {
        "five": float(np.mean(drawn[:, inside].min(axis=1) > drawn[:, ~inside].max(axis=1))),
        "five right": set(five.tolist()) == set(true_five.tolist()),
        "said": known.above[first, second].round(4).tolist(),
        "better": (means[first] > means[second]).tolist(),
        "near": (np.abs(ranks[first] - ranks[second]) <= 8).tolist(),
    }


def settle_table(rows: Rows) -> Iterator[str]:
    """Calibration, sharpness and signs of probabilities."""
    yield "| | judged | pairs | ECE | ECE, at most 8 ranks apart | sharpness | order right | decided | of these right | the first five: said | right |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for setting in map(str, SHALLOW):
        for design in ("all of these", *TOP, *RANDOM[:3]):
            cells = [
                row
                for key, row in rows.items()
                if row and key.startswith(f"{setting}|") and design in (key.split("|")[1], "all of these")
            ]
            if cells:
                p, better, near = (
                    np.concatenate([row[name] for row in cells]) for name in ("said", "better", "near")
                )
                decided = np.maximum(p, 1 - p) >= SURE
                right = (p > 0.5) == better
                yield (
                    f"| {setting} | {design} | {len(p):,} | {_calibration_error(p, better):.3f} | {_calibration_error(p[near], better[near]):.3f} "
                    f"| {np.abs(p - 0.5).mean():.2f} | {right.mean():.1%} | {decided.mean():.0%} | {right[decided].mean():.1%} "
                    f"| {np.mean([row['five'] for row in cells]):.2f} | {np.mean([row['five right'] for row in cells]):.2f} |"
                )


def _calibration_error(p: Floats, better: Bools) -> float:
    """Expected calibration error in ten bins of equal width (Guo et al., ICML 2017)."""
    bins = np.minimum((p * 10).astype(int), 9)
    return float(sum(abs(p[bins == at].sum() - better[bins == at].sum()) for at in range(10)) / len(p))


def _two_thirds(of: Collection, draw: int) -> list[QueryPassages]:
    n = len(of.queries)
    chosen = np.random.default_rng([draw, 77]).choice(n, 2 * n // 3, replace=False)
    return [of.queries[at] for at in chosen.tolist()]


def _standing(seen: Queries) -> Standing:
    return standing(fit(seen, neighbours=False), seen, K)


def plan_cells(work: Path, draws: int) -> Cells:
    """How many judgments decide which of two runs is better, by what is judged next."""
    for draw in range(draws):
        for setting in SHALLOW:
            for near in (True, False):
                yield (
                    f"{setting}|{'at most 6' if near else 'more than 6'}|{draw}",
                    partial(_plans, work, setting, near, draw),
                )


def _plans(work: Path, setting: Setting, near: bool, draw: int) -> Any:
    of = collection(work, setting)
    means = true_scores(of.queries, of.relevant)[0].mean(axis=1)
    rng, ranks = np.random.default_rng([draw, 3]), ranks_of(means)
    pair = (0, 0)
    while pair[0] == pair[1] or (abs(ranks[pair[0]] - ranks[pair[1]]) <= 6) != near:
        first, second = rng.integers(0, len(means), 2).tolist()
        pair = first, second
    found = {order: _decided(of, pair, order) for order in PLANS}
    first_is_better = bool(means[pair[0]] > means[pair[1]])
    return {order: [spent, (p > 0.5) == first_is_better] for order, (spent, p) in found.items()}


def _decided(of: Collection, pair: Pair, order: str) -> tuple[int, float]:
    """After how many judgments, beyond three of each query, two runs are decided; the probability then."""
    masks = [query.judged.copy() for query in judged_alone(of.queries, TOP[0], 0)]
    spent = 0
    while True:
        known = _standing([knowing(query, mask) for query, mask in zip(of.queries, masks, strict=True)])
        p = float(known.above[pair])
        if not 1 - SURE < p < SURE:
            return spent, p
        runs = list(pair) if order == "two runs" else None
        values = (
            known.gains([pair]) if order == "plan" else [_first_rank(query, runs) for query in of.queries]
        )
        left = sorted(
            (-float(value[at]), number, at)
            for number, (value, mask) in enumerate(zip(values, masks, strict=True))
            for at in np.flatnonzero(~mask & (value > 0)).tolist()
        )
        if not left:
            return spent, p
        todo = left[: max(10, spent // 8)]
        for _, number, at in todo:
            masks[number][at] = True
        spent += len(todo)


def _first_rank(query: QueryPassages, runs: list[int] | None) -> Floats:
    """10 of passages that a run has first, 1 at rank ten, 0 of others: the order of depth pooling."""
    value = np.zeros(len(query.doc_ids) + 1)
    ranks = query.ranks[:, :K] if runs is None else query.ranks[runs, :K]
    for rank in range(ranks.shape[1]):
        np.maximum.at(value, ranks[:, rank], float(K - rank))
    return value[:-1]


def plan_table(rows: Rows) -> Iterator[str]:
    """Judgments until pairs of runs are decided."""
    yield "| | ranks apart | pairs | the plan | order right | depth pooling of the two runs | order right | depth pooling of all runs | order right | plan / two runs | plan / all |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for setting in map(str, SHALLOW):
        for apart in ("at most 6", "more than 6"):
            cells = [row for key, row in rows.items() if key.startswith(f"{setting}|{apart}|")]
            if cells:
                means = {order: np.mean([cell[order] for cell in cells], axis=0) for order in PLANS}
                figures = " | ".join(f"{spent:.0f} | {right:.0%}" for spent, right in means.values())
                plan, two, every = (max(spent, 1e-9) for spent, _ in means.values())
                yield f"| {setting} | {apart} | {len(cells)} | {figures} | {plan / two:.2f} | {plan / every:.2f} |"


def next_cells(work: Path, draws: int) -> Cells:
    """Tau after so many judgments a query, by what is judged next."""
    for draw in range(draws):
        for setting in SHALLOW:
            for order in ORDERS:
                yield f"{setting}|{order}|{draw}", partial(_taus_by_order, work, setting, order, draw)


def _taus_by_order(work: Path, setting: Setting, order: str, draw: int) -> Any:
    of = collection(work, setting)
    queries = _two_thirds(of, draw)
    means = true_scores(queries, of.relevant)[0].mean(axis=1)
    best = np.argsort(-means, kind="stable")[:TEN]
    found = []
    for masks in _judged_by(queries, order, draw):
        seen = [knowing(query, mask) for query, mask in zip(queries, masks, strict=True)]
        try:
            learned = fit(seen, neighbours=False)
            here = expected_scores(learned, seen, K, of.relevant, fits=False).means[0]
        except ValueError:
            here = board(seen, [np.nan_to_num(query.judgments) for query in seen]).mean(axis=1)
        found.append([tau(here, means), tau(here[best], means[best])])
    return found


def _judged_by(queries: Queries, order: str, draw: int) -> Iterator[list[Bools]]:
    """What is judged after each of `STEPS` judgments a query."""
    rng = np.random.default_rng([draw, 4])
    masks = [np.zeros(len(query.doc_ids), bool) for query in queries]
    weights = [retrieved_weights(query.ranks, len(query.doc_ids)) for query in queries]
    if order == "depth":
        weights = [_first_rank(query, None) + rng.random(len(query.doc_ids)) / 2 for query in queries]
    share = RANDOM_SHARE if order == "retrieved" else 0.0
    rounds = judging_rounds(weights, [~mask for mask in masks], share, draw)
    fronts = [_move_to_front(query, rng) for query in queries]
    for judged in range(1, STEPS[-1] + 1):
        if order == "move to front":
            todo = [(at, next(front, None)) for at, front in enumerate(fronts)]
        elif order == "mtc" and judged > 1:
            todo = _most_telling(queries, masks)
        else:
            todo = [(at, passage) for at, passage, _ in next(rounds, [])]
        for at, passage in todo:
            if passage is not None:
                masks[at][passage] = True
        if judged in STEPS:
            yield masks


def _most_telling(queries: Queries, masks: Sequence[Bools]) -> list[tuple[int, int | None]]:
    """Of each query the passage that tells most of the order of all runs, as `learned-next --by mtc`."""
    values: Sequence[Floats] = [retrieved_weights(query.ranks, len(query.doc_ids)) for query in queries]
    try:
        known = _standing([knowing(query, mask) for query, mask in zip(queries, masks, strict=True)])
        values = known.gains(list(combinations(range(len(known.mean)), 2)))
    except ValueError:
        # Nothing relevant is judged yet.
        pass
    return [
        (at, None if mask.all() else int(np.argmax(np.where(mask, -1, value))))
        for at, (value, mask) in enumerate(zip(values, masks, strict=True))
    ]


def _move_to_front(query: QueryPassages, rng: np.random.Generator) -> Iterator[int]:
    """A run goes on until it has a passage that is not relevant (Cormack, Palmer & Clarke, SIGIR 1998)."""
    priority = rng.random(len(query.ranks)) * 1e-3
    judged: set[int] = set()
    while np.isfinite(priority).any():
        run = int(np.argmax(priority))
        left = [at for at in query.ranks[run].tolist() if at >= 0 and at not in judged]
        if not left:
            priority[run] = -np.inf
            continue
        judged.add(left[0])
        priority[run] -= query.judgments[left[0]] <= 0
        yield left[0]


def next_table(rows: Rows) -> Iterator[str]:
    """Tau of all runs, and of the ten best, by judgments a query."""
    yield "| | judged next | draws | " + " | ".join(f"{step} a query" for step in STEPS) + " | mean |"
    yield "|---|---|---|" + "---|" * (len(STEPS) + 1)
    for setting in (*map(str, SHALLOW), "mean"):
        for order in ORDERS:
            cells = [
                row
                for key, row in rows.items()
                if key.split("|")[1] == order and setting in (key.split("|")[0], "mean")
            ]
            if cells:
                means = np.mean(cells, axis=0)
                figures = [f"{every:.2f} / {ten:.2f}" for every, ten in [*means, means.mean(axis=0)]]
                yield f"| {setting} | {order} | {len(cells)} | {' | '.join(figures)} |"
