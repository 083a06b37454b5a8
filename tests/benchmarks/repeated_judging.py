# ruff: noqa: E501
"""Whether the spread of ranks over resampled answers equals that of judging again.

Writes results/repeated-judging.md.

    python tests/benchmarks/repeated_judging.py SHARED

SHARED has dl19, collections and rag24. Three minutes on one core.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from judged_runs import Run, answer_runs, lines, ranking_runs, recorded_judges

RESULTS = Path(__file__).parent / "results" / "repeated-judging.md"
JUDGINGS, DRAWS, ENDLESS = 100, 200, 4000
NOISE, SAMPLES = (0.02, 0.05, 0.1, 0.2), (2, 3, 5, 10)
INTRODUCTION = """# Repeated judging: is the spread of ranks right?

Made by `python tests/benchmarks/repeated_judging.py ../shared`: {judgings} judgings a figure, {draws} draws each, one seed, 37 runs (P, nDCG) or 20 (Support). What follows from it:
[examples/design/018-repeated-judging.md](../../../examples/design/018-repeated-judging.md).

Each cell has a label (dl19: FLAN-T5-large's; cranfield: people's; Support: made up, full or not) and a chance to be answered otherwise: Beta(0.5, ...) with
the noise as its mean, at most one half (a few cells are doubtful, most are not). The judge answers each cell n times. A run's score is the mean of its n scores, one from each
time; the true ranks are those of endless answers (nDCG: of {endless} times). Queries are fixed. Four ways to say where a rank is:

- **n of n**: of each query, draw n of its n times with replacement; rank the runs; 2.5% of the first places to 97.5% of the last (tied runs share their places).
- **n - 1 of n**: draw n - 1, so that the variance is right (with n of n it is (n - 1) / n of it).
- **differences**: a run is ahead where a difference is beyond 95% of the greatest of all its differences in draws of n - 1 (Mogstad, Romano, Shaikh and Wilhelm, Review of Economic Studies 2024).
- **vote**: draws of n - 1 times, scores of the majority's labels; the true ranks are those of endless answers' majority.

"Holds" is how many intervals hold the true rank, in % (the worst run's); "ranks" is how many ranks an interval has. "Spread" is the ranks' standard deviation in the draws,
by that of the {judgings} judgings' own ranks (1 is right). "Flips" is the chance that two answers of a cell differ: reported (true).
"""


@dataclass(frozen=True)
class Scored:
    """A measure of runs: of each query its cells and the runs' weights on them; ideal: gains of an ideal ranking."""

    labels: np.ndarray
    queries: list[tuple[np.ndarray, np.ndarray]]
    ideal: np.ndarray | None = None

    def values(self, answers: np.ndarray) -> np.ndarray:
        """Scores of each time, times x queries x runs; their sum over queries is the runs' score."""
        found = []
        for cells, weights in self.queries:
            of_query = answers[:, cells].astype(float)
            value = of_query @ weights.T
            if self.ideal is not None:
                relevant = np.minimum(of_query.sum(axis=1).astype(int), len(self.ideal) - 1)
                value = value / np.maximum(self.ideal[relevant], 1e-9)[:, None]
            found.append(value)
        return np.stack(found, axis=1)


def scored(runs: list[Run], query_of: np.ndarray, labels: np.ndarray, discounted: bool = False) -> Scored:
    """The measure of runs whose weights are given, or nDCG of their cells' order."""
    weights = np.zeros((len(runs), len(labels)))
    for at, run in enumerate(runs):
        weights[at, run.cells] = run.weights
        if discounted:
            of_run = query_of[run.cells]
            # Cells of a query lie together, in the order of ranks.
            first = np.maximum.accumulate(
                np.where(np.diff(of_run, prepend=-1) != 0, np.arange(len(of_run)), 0)
            )
            weights[at, run.cells] = 1 / np.log2(np.arange(len(of_run)) - first + 2) / (query_of.max() + 1)
    ideal = np.cumsum(np.concatenate([[0], 1 / np.log2(np.arange(10) + 2)])) if discounted else None
    cells = [np.flatnonzero(query_of == q) for q in range(int(query_of.max()) + 1)]
    return Scored(labels, [(at, weights[:, at]) for at in cells if len(at)], ideal)


def cases(shared: Path) -> Iterator[tuple[str, Scored]]:
    """Measures by name."""
    for name, least in (("dl19", 2), ("cranfield", 1)):
        folder = shared / name if name == "dl19" else shared / "collections" / name
        for k in (10, 20):
            runs, cells, _ = ranking_runs(folder, k, least)
            query_of = np.unique([q for q, _ in cells], return_inverse=True)[1]
            labels = np.zeros(len(cells))
            for run in runs:
                labels[run.cells] = run.people
            if name == "dl19":
                labels = recorded_judges(folder, cells)["FLAN-T5-large, best rating"]
            yield f"{name} P@{k}", scored(runs, query_of, labels)
            if k == 10:
                yield f"{name} nDCG@10", scored(runs, query_of, labels, discounted=True)
    answers = [json.loads(line)["answer"] for line in lines(shared / "rag24/responses.gpt-4o.jsonl.gz")]
    sizes = np.array([sum(bool(x["citations"]) for x in answer) for answer in answers if answer][:36])
    made_up = answer_runs(sizes, 0.95, wild=False)
    labels = np.concatenate([run.people for run in made_up]) == 1
    yield (
        "Support",
        scored(made_up, np.tile(np.repeat(np.arange(len(sizes)), sizes), 20), labels.astype(float)),
    )


def places(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last place that each run may have; they differ for tied runs. The last axis is the runs."""
    apart = scores[..., None, :] - scores[..., :, None]
    return 1 + (apart > 1e-9).sum(axis=-1), (apart > -1e-9).sum(axis=-1)


def by_differences(scores: np.ndarray, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first and last place of each run, by its differences to all others."""
    apart = scores[:, None] - scores[None, :]
    noise = (drawn[:, :, None] - drawn[:, None, :]) - apart
    deviation = np.sqrt(np.mean(noise**2, axis=0))
    scaled = np.abs(noise) / np.where(deviation > 0, deviation, np.inf)
    reach = np.quantile(scaled.max(axis=2), 0.95, axis=0)[:, None] * deviation + 1e-9
    return 1 + (apart < -reach).sum(axis=1), len(scores) - (apart > reach).sum(axis=1)


def majority(measure: Scored, shares: np.ndarray) -> np.ndarray:
    """Scores of labels by majority, rows x runs, of shares of "relevant", rows x cells; a tie is a half."""
    return measure.values((np.sign(shares - 0.5) + 1) / 2).sum(axis=1)


def measured(measure: Scored, chances: np.ndarray, n: int) -> dict[str, tuple[float, float, float, float]]:
    """By way: coverage and the worst run's, mean number of ranks, reported spread by the true one; flips."""
    rng = np.random.default_rng(n)
    answers = rng.random((JUDGINGS, n, len(chances))) < chances
    values = np.array([measure.values(times) for times in answers])
    shares = answers.mean(axis=1)
    endless = chances[None] if measure.ideal is None else rng.random((ENDLESS, len(chances))) < chances
    truths = {False: measure.values(endless).mean(axis=0).sum(axis=0)}
    scores = {False: values.mean(axis=1).sum(axis=1)}
    ways = [("n of n", n, False), ("n - 1 of n", n - 1, False)]
    if n in (3, 5) and measure.ideal is None:
        ways.append(("vote", n - 1, True))
        truths[True], scores[True] = majority(measure, chances[None])[0], majority(measure, shares)
    found = {}
    for way, m, vote in ways:
        truth = places(truths[vote])[0]
        true_spread = np.mean(places(scores[vote]), axis=0).std(axis=0, ddof=1).mean()
        results: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {way: []}
        spreads = []
        for at in range(JUDGINGS):
            times = rng.multinomial(m, np.full(n, 1 / n), (DRAWS, len(measure.queries))) / m
            if vote:
                drawn_shares = np.zeros((DRAWS, len(chances)))
                for q, (cells, _) in enumerate(measure.queries):
                    drawn_shares[:, cells] = times[:, q] @ answers[at][:, cells]
                drawn = majority(measure, drawn_shares)
            else:
                drawn = np.tensordot(times, values[at].transpose(1, 0, 2), 2)
            first, last = places(drawn)
            spreads.append(((first + last) / 2).std(axis=0))
            low = np.quantile(first, 0.025, axis=0, method="lower")
            results[way].append((low, np.quantile(last, 0.975, axis=0, method="higher")))
            if way == "n - 1 of n":
                results.setdefault("differences", []).append(by_differences(scores[False][at], drawn))
        for name, intervals in results.items():
            low, high = np.array(intervals).swapaxes(0, 1)
            held = np.mean((low <= truth) & (truth <= high), axis=0)
            found[name] = (held.mean(), held.min(), (high - low + 1).mean(), np.mean(spreads) / true_spread)
    flips = 2 * shares * (1 - shares) * n / (n - 1)
    return found | {"flips": (flips.mean(), (2 * chances * (1 - chances)).mean(), 0, 0)}


def row(name: str, measure: Scored, noise: float, n: int) -> str:
    """A line of the table."""
    errors = np.minimum(np.random.default_rng(35).beta(0.5, 0.5 / noise - 0.5, len(measure.labels)), 0.5)
    found = measured(measure, np.where(measure.labels > 0, 1 - errors, errors), n)
    cells = [name, f"{noise:.0%}", str(n), "{:.3f} ({:.3f})".format(*found["flips"])]
    for way in ("n of n", "n - 1 of n", "differences", "vote"):
        held, worst, width, spread = found.get(way, (0, 0, 0, 0))
        text = f"{100 * held:.0f} ({100 * worst:.0f}); {width:.1f}"
        text += "" if way == "differences" else f"; {spread:.2f}"
        cells.append(text if way in found else "")
    return f"| {' | '.join(cells)} |"


def main(shared: Path) -> None:
    """Measure all cases and write the page."""
    page = [INTRODUCTION.format(judgings=JUDGINGS, draws=DRAWS, endless=ENDLESS)]
    named = (
        "n of n: holds; ranks; spread",
        "n - 1 of n: holds; ranks; spread",
        "differences: holds; ranks",
        "vote: holds; ranks; spread",
    )
    page += [f"| measure | noise | n | flips | {' | '.join(named)} |", "|---|---:|---:|---|---|---|---|---|"]
    for name, measure in cases(shared):
        for noise in NOISE:
            for n in SAMPLES:
                page.append(row(name, measure, noise, n))
                print(page[-1], flush=True)
    RESULTS.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
