# ruff: noqa: E501
"""Whether people's labels of a random share correct a judge's mean scores. Writes results/corrected.md.

    python tests/benchmarks/corrected.py SHARED

SHARED has dl19, collections, rag24 and rag25. A minute or two on one core.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from judged_runs import Run, cases
from scipy.stats import t as student

RESULTS = Path(__file__).parent / "results" / "corrected.md"
SHARES, REPEATS = (0.05, 0.1, 0.2, 0.5), 400
#: For how many cells the variance of the whole sample counts, beside a run's own (method "steady").
PRIOR = 20.0
METHODS = ("people", "people, steady", "PPI", "PPI++", "PPI++, steady")
INTRODUCTION = """# Scores corrected by people's labels of a random share

Made by `python tests/benchmarks/corrected.py ../shared`: 400 samples a figure, one seed, 37 runs (P) or 20 (Support, A). What follows from it:
[examples/design/017-corrected-scores.md](../../../examples/design/017-corrected-scores.md).

A score is a weighted mean of cells (passages of a ranking, citations, nuggets), theta = sum w y. People label a simple random sample S of all cells of
all runs; a run uses those that it has. With the judge's values f of all its cells, the corrected score is

    theta = lambda * sum w f + sum_S w (y - lambda f) / sum_S w

lambda = 0 is the human sample alone, lambda = 1 is prediction-powered inference (Angelopoulos et al., Science 2023), the best lambda is
PPI++ (arXiv:2311.01453). **Queries are fixed**: the truth is the score that labels of all cells would give. So the variance has the factor
1 - n/N, and the best lambda is cov(y, f) / var(f). "Steady" has lambda from the whole sample, and adds to a run's variance that of the whole sample
with the weight of {prior:.0f} cells (with 5, coverage of good judges was lower at 5%). Intervals are Student's t, cut to 0..1.
"""


def moments(chosen: np.ndarray, run: Run) -> tuple[np.ndarray, ...]:
    """Of each sample: labels n, effective n, means of y and f, and mean squares of yy, yf, ff around these."""
    w, y, f = run.weights, run.people, run.judge
    terms = [w**0, w, w * y, w * f, w**2, w**2 * y, w**2 * f, w**2 * y * y, w**2 * y * f, w**2 * f * f]
    n, s, sy, sf, s2, s2y, s2f, yy, yf, ff = (chosen[:, run.cells] @ np.column_stack(terms)).T
    some, some2 = np.maximum(s, 1e-300), np.maximum(s2, 1e-300)
    my, mf = sy / some, sf / some
    yy += my**2 * s2 - 2 * my * s2y
    yf += my * mf * s2 - my * s2f - mf * s2y
    ff += mf**2 * s2 - 2 * mf * s2f
    return n, s**2 / some2, my, mf, yy / some2, yf / some2, ff / some2


def interval(
    run: Run, sums: tuple[np.ndarray, ...], lam: np.ndarray, pooled: np.ndarray, prior: float
) -> tuple[float, float]:
    """How many intervals hold the score that all labels give, and their mean width; of one label it is 0 to 1."""
    n, effective, my, mf, yy, yf, ff = sums
    free = np.maximum(effective, 2) - 1 + prior
    variance = np.maximum(effective * (yy - 2 * lam * yf + lam**2 * ff) + prior * pooled, 0) / free
    half = student.ppf(0.975, free) * np.sqrt(variance * (1 - n / len(run.cells)) / np.maximum(effective, 1))
    centre, truth = lam * (run.weights @ run.judge) + my - lam * mf, run.weights @ run.people
    low = np.where(effective > 1.5, np.clip(centre - half, 0, 1), 0)
    high = np.where(effective > 1.5, np.clip(centre + half, 0, 1), 1)
    return float(np.mean((low - 1e-9 <= truth) & (truth <= high + 1e-9))), float(np.mean(high - low))


def measured(runs: list[Run], share: float) -> np.ndarray:
    """Coverage and mean width of 400 random samples: methods x runs x 2."""
    rng, n_cells = np.random.default_rng(7), 1 + max(int(run.cells.max()) for run in runs)
    n = round(share * n_cells)
    chosen = np.zeros((REPEATS, n_cells), dtype=bool)
    picked = np.argpartition(rng.random((REPEATS, n_cells), dtype=np.float32), n, axis=1)[:, :n]
    np.put_along_axis(chosen, picked, True, axis=1)
    sums = [moments(chosen, run) for run in runs]
    free = np.maximum(sum(np.maximum(m[0] - 1, 0) for m in sums), 1)
    yy, yf, ff = (sum(m[0] * m[at] for m in sums) / free for at in (4, 5, 6))
    lam = yf / np.where(ff > 0, ff, np.inf)
    found = []
    for run, m in zip(runs, sums, strict=True):
        own = m[5] / np.where(m[6] > 0, m[6], np.inf)
        ways = ((0 * lam, 0.0), (0 * lam, PRIOR), (0 * lam + 1, 0.0), (own, 0.0), (lam, PRIOR))
        found.append([interval(run, m, x, yy - 2 * x * yf + x**2 * ff, prior) for x, prior in ways])
    return np.array(found).swapaxes(0, 1)


def correlation(runs: list[Run]) -> float:
    """Of the judge with people, over the cells of a run."""
    everything = np.ones((1, 1 + max(int(run.cells.max()) for run in runs)), dtype=bool)
    yy, yf, ff = np.mean([moments(everything, run)[4:] for run in runs], axis=0)[:, 0]
    return float(yf / np.sqrt(yy * ff))


def percent(coverage: np.ndarray) -> str:
    """Mean coverage of the runs, and the worst run's."""
    return f"{100 * coverage.mean():.1f} ({100 * coverage.min():.0f})"


def holds(found: np.ndarray) -> bool:
    """Coverage within 93 to 97%, and a fifth narrower than people alone."""
    return bool(
        0.93 <= found[4, :, 0].mean() <= 0.97 and found[4, :, 1].mean() <= 0.8 * found[1, :, 1].mean()
    )


def row(names: tuple[str, ...], runs: list[Run], shares: tuple[float, ...]) -> tuple[str, list[np.ndarray]]:
    """A line of a table, and what was measured for each share."""
    found = [measured(runs, share) for share in shares]
    cells = [
        f"{percent(f[4, :, 0])}; {f[4, :, 1].mean() / f[1, :, 1].mean():.2f}{' **yes**' * holds(f)}"
        for f in found
    ]
    return f"| {' | '.join((*names, f'{correlation(runs):.2f}', *cells))} |", found


def main(shared: Path) -> None:
    """Measure all cases and write the page."""
    tables: dict[str, list[str]] = {"cells": [], "queries": []}
    by_method: dict[str, list[list[np.ndarray]]] = {}
    for measure, judge, runs, whole in cases(shared):
        line, found = row((measure, judge), runs, SHARES)
        tables["cells"].append(line)
        by_method.setdefault(measure, []).append(found)
        if whole:
            tables["queries"].append(row((measure, judge), whole, SHARES[2:])[0])
        print(line, flush=True)
    explained = "Coverage in % (the worst run's); width by that of people alone, steady. **yes**: coverage is within 93 to 97%, and the width at most 0.80."
    page = [INTRODUCTION.format(prior=PRIOR), "## Cells at random", "", f"PPI++, steady. {explained}", ""]
    page += [
        f"| measure | judge | rho | {' | '.join(f'{s:.0%}' for s in SHARES)} |",
        "|---|---|---:|" + "---|" * len(SHARES),
    ]
    page += [*tables["cells"], "", "## Whole queries at random", ""]
    page += [
        f"The same where people judge all cells of some queries: 20% of dl19 are 4 queries, of the collections 12. {explained}",
        "",
    ]
    page += ["| measure | judge | rho | 20% | 50% |", "|---|---|---:|---|---|", *tables["queries"], ""]
    page += [
        "## Other intervals",
        "",
        "Cells at random, means over the judges: coverage in % (the worst run of any judge); width.",
        "",
    ]
    page += [f"| measure | share | {' | '.join(METHODS)} |", "|---|---:|" + "---|" * len(METHODS)]
    for measure, judges in by_method.items():
        for at, share in enumerate(SHARES):
            every = np.array([found[at] for found in judges])
            ways = [
                f"{percent(every[:, way, :, 0])}; {every[:, way, :, 1].mean():.3f}"
                for way in range(len(METHODS))
            ]
            page.append(f"| {measure} | {share:.0%} | {' | '.join(ways)} |")
    RESULTS.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
