# ruff: noqa: E501
"""Runs with people's labels and recorded, learned or simulated judges, for corrected.py and repeated_judging.py.

It reads ../shared: dl19, collections, rag24 and rag25.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Run:
    """Which cells a run's score needs, their weights (sum 1), people's values and the judge's."""

    cells: np.ndarray
    weights: np.ndarray
    people: np.ndarray
    judge: np.ndarray


def lines(path: Path) -> Iterator[str]:
    """The lines of a file, packed or not."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        yield from file


def ranking_runs(folder: Path, k: int, least: int) -> tuple[list[Run], list[tuple[str, str]], np.ndarray]:
    """P@k's runs without a judge, all cells (query, passage), and reciprocal ranks, cells x runs."""
    qrels = (line.split() for line in lines(next(folder.glob("qrels.txt*"))))
    labels = {(q, d): int(label) >= least for q, _, d, label in qrels}
    queries = {q for q, _ in labels}
    rankings, places = [], []
    for path in sorted((folder / "runs").iterdir()):
        by_query: dict[str, list[tuple[float, str]]] = defaultdict(list)
        for q, _, d, _, score, _ in (line.split() for line in lines(path)):
            if q in queries:
                by_query[q].append((-float(score), d))
        ranked = {q: [d for _, d in sorted(found)] for q, found in by_query.items()}
        rankings.append([(q, d) for q, found in ranked.items() for d in found[:k]])
        places.append({(q, d): 1 / (rank + 5) for q, found in ranked.items() for rank, d in enumerate(found)})
    cells = sorted({cell for ranking in rankings for cell in ranking})
    number = {cell: at for at, cell in enumerate(cells)}
    people = np.array([float(labels.get(cell, False)) for cell in cells])
    wanted = [np.array([number[cell] for cell in ranking]) for ranking in rankings]
    runs = [Run(at, np.full(len(at), 1 / len(at)), people[at], people[at]) for at in wanted]
    return runs, cells, np.array([[place.get(cell, 0.0) for place in places] for cell in cells])


def learned_judge(cells: list[tuple[str, str]], ranks: np.ndarray, people: np.ndarray) -> np.ndarray:
    """Ridge regression on reciprocal ranks, taught by all judgments of the other nine tenths of the queries."""
    fold_of = {q: at % 10 for at, q in enumerate(sorted({q for q, _ in cells}))}
    folds = np.array([fold_of[q] for q, _ in cells])
    x, values = np.column_stack([np.ones(len(cells)), ranks]), np.zeros(len(cells))
    for fold in range(10):
        known = folds != fold
        gram = x[known].T @ x[known] + 0.01 * np.eye(x.shape[1])
        values[~known] = x[~known] @ np.linalg.solve(gram, x[known].T @ people[known])
    return values


def noisy_judge(people: np.ndarray, same: float, rng: np.random.Generator, wild: bool = False) -> np.ndarray:
    """People's label in a share `same` of cells, else one step off, three of four times up; wild: any other label."""
    steps, at = np.unique(people, return_inverse=True)
    wrong = rng.permutation(len(at)) < round((1 - same) * len(at))
    up = (at == 0) | ((rng.random(len(at)) < 0.75) & (at < len(steps) - 1))
    other = (at + rng.integers(1, len(steps), len(at))) % len(steps) if wild else np.where(up, at + 1, at - 1)
    return steps[np.where(wrong, other, at)]


def recorded_judges(folder: Path, cells: list[tuple[str, str]]) -> dict[str, np.ndarray]:
    """FLAN-T5-large's labels of dl19: the best of ten ratings is 4 or 5; the share of ratings that are."""
    reached = dict.fromkeys(cells, np.zeros(10))
    for query, passages in map(json.loads, lines(folder / "graded.flan-t5-large.jsonl.gz")):
        for passage in passages:
            ratings = [x["self_rating"] for x in passage["exam_grades"][0]["self_ratings"]]
            reached[query, passage["paragraph_id"]] = np.array(ratings) >= 4
    table = np.array([reached[cell] for cell in cells], dtype=float)
    return {
        "FLAN-T5-large, best rating": table.max(axis=1),
        "FLAN-T5-large, share of items": table.mean(axis=1),
    }


def answer_runs(sizes: np.ndarray, same: float, wild: bool) -> list[Run]:
    """20 made-up runs with labels 0, 0.5, 1 of `sizes` cells a query; scores are means of queries' means."""
    rng = np.random.default_rng(3)
    query = np.repeat(np.arange(len(sizes)), sizes)
    weights = 1 / (sizes[query] * np.count_nonzero(sizes))
    runs = []
    for at, quality in enumerate(np.linspace(-1, 1.5, 20)):
        latent = quality + rng.normal(0, 0.7, len(sizes))[query] + rng.logistic(0, 1, len(query))
        people = np.digitize(latent, [-0.6, 0.6]) / 2
        cells = np.arange(len(query)) + at * len(query)
        runs.append(Run(cells, weights, people, noisy_judge(people, same, rng, wild)))
    return runs


def by_query(runs: list[Run], cells: list[tuple[str, str]]) -> list[Run]:
    """The runs with whole queries for cells."""
    names, of_cell = np.unique([q for q, _ in cells], return_inverse=True)
    n = len(names)
    means = [[np.bincount(of_cell[r.cells], v * r.weights * n, n) for v in (r.people, r.judge)] for r in runs]
    return [Run(np.arange(n), np.full(n, 1 / n), people, judge) for people, judge in means]


def cases(shared: Path) -> Iterator[tuple[str, str, list[Run], list[Run] | None]]:
    """Data and measure, judge, runs over cells, and over whole queries (or none)."""
    for name, least in (
        ("dl19", 2),
        ("collections/cranfield", 1),
        ("collections/vaswani", 1),
        ("collections/cisi", 1),
    ):
        for k in (10, 20):
            runs, cells, ranks = ranking_runs(shared / name, k, least)
            people = np.zeros(len(cells))
            for run in runs:
                people[run.cells] = run.people
            judges = recorded_judges(shared / name, cells) if name == "dl19" else {}
            paths = [path.name for path in sorted((shared / name / "runs").iterdir())]
            if "minilm.run.gz" in paths:
                judges["embedding: MiniLM's 1 / (rank + 5)"] = ranks[:, paths.index("minilm.run.gz")]
            features = np.column_stack([ranks, *judges.values()])
            judges["learned from the other queries"] = learned_judge(cells, features, people)
            for same in (0.6, 0.75, 0.85, 0.9, 0.95) if k == 10 else ():
                judges[f"made up, {same:.0%} as people"] = noisy_judge(people, same, np.random.default_rng(1))
            for judge, values in judges.items():
                of_judge = [replace(run, judge=values[run.cells]) for run in runs]
                measure = f"{Path(name).name} P@{k}"
                yield measure, judge, of_judge, by_query(of_judge, cells) if k == 10 else None
    answers = [json.loads(line)["answer"] for line in lines(shared / "rag24/responses.gpt-4o.jsonl.gz")]
    support = [sum(bool(sentence["citations"]) for sentence in answer) for answer in answers]
    nuggets = [len(json.loads(line)["nuggets"]) for line in lines(shared / "rag25/nuggets.jsonl.gz")]
    for name, sizes in (("Support", support[:36]), ("nugget score A", nuggets)):
        for wild in (False, True):
            for same in (0.56, 0.72, 0.85, 0.95):
                judge = f"made up, {same:.0%} as people{', errors of any size' * wild}"
                yield name, judge, answer_runs(np.array(sizes), same, wild), None
