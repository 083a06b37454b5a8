# ruff: noqa: E501
"""Coverage of the intervals that the program prints. Writes tests/benchmarks/results/intervals.md.

    python tests/benchmarks/interval_coverage.py TRACK [FOLDER of RAGVAL's answers]

TRACK is one of TREC DL 2019 with an update's out/ (37 runs, 21 queries, recorded grades). Not a test: it takes some five
minutes on two cores; tests/scores/test_interval_coverage.py holds a small part of it.

An interval is for what a figure would be over all queries that might have been asked, the runs being fixed. What that
is nobody knows of real queries, so each simulation has a population of queries of which the truth is known:

- halves: 10 of the track's 21 queries, drawn without replacement; the truth is the figure of all 21. Half of the
  population is in the sample, so it varies less than one of a large population does: its variance is
  multiplied by 1 - 10/21 (the finite population correction). Printed intervals are for the large population, and would
  hold all 21 too often. So the error is multiplied by the root of 1 - 10/21 here, and the bias, which goes with the variance
  of noise, by 1 - 10/21; the rest is the program's.
- as measured: n queries drawn from the 21 with replacement, which is a population in which each of them stands equally
  often; the truth is the figure of all 21. Nothing is assumed, and no correction is needed. With n = 21 a third of the 21
  is missing in each sample.
- smoothed: the runs' true means are those of the 21 queries without their noise (`denoised`, by which the intervals
  themselves estimate a bias), and a query adds to them what one of the 21 does, mixed half and half (in
  variance) with normal noise of the same covariance. No query comes twice. The truth is the coefficient of the true means.
- drawn runs: true means of k runs on both sides are normal with a correlation of 0.9, and so are their deviations on a query, with
  a correlation of 0.5 between the sides; queries differ in how far they set runs apart and in their noise (a gamma weight). Runs are drawn
  anew each time. Signal is the deviation of runs by that of the noise on a query. Nothing in it is TREC's.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from trecexam.extensions.simulation.arithmetic import removal
from trecexam.features.correlation.paired_scores import paired_scores
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.track_graders import open_folder
from trecexam.scores.correlation import _coefficients, correlate, ends, error_and_bias, half_width
from trecexam.scores.kappa import kappa
from trecexam.scores.leaderboard import interval, score
from trecexam.scores.rank_correlation import QueryDraws, denoised, means, official_means, tau_b_columns

RESULTS = Path(__file__).parent / "results" / "intervals.md"
NAMES = ("Kendall's tau", "Spearman's rho", "tau_AP", "RBO")
PAIRS = (
    ("P(rel=4)@20", "nDCG@10"), ("nDCG@20", "P@20"), ("AP(rel=4)", "AP"),
    ("Cover(rel=4)@20", "nDCG@10"), ("alpha_nDCG@20", "AP"), ("nDCG@20", "official_leaderboard"),
)  # fmt: skip
REPS, FEW = 400, 150
Floats = np.ndarray
#: Both sides' values of a sample of queries.
Sides = tuple[Floats, Floats]
#: What an interval does: held the truth, lies below it, its width.
Outcome = tuple[bool, bool, float]


def coefficients(rubric: Floats, official: Floats) -> Floats:
    return _coefficients(means(rubric)[:, None], official_means(official)[:, None], 0.9)[:, 0]


def at_queries(sides: Sides, queries: Floats) -> Sides:
    return sides[0][:, queries], sides[1][:, queries] if sides[1].ndim == 2 else sides[1]


def as_measured(sides: Sides, rng: np.random.Generator, n: int) -> Sides:
    return at_queries(sides, rng.integers(0, sides[0].shape[1], n))


def halved(sides: Sides, rng: np.random.Generator, n: int) -> Sides:
    return at_queries(sides, rng.permutation(sides[0].shape[1])[:n])


def smoothed(sides: Sides, rng: np.random.Generator, n: int) -> Sides:
    n_queries = sides[0].shape[1]
    which, mix = rng.integers(0, n_queries, n), rng.normal(size=(n_queries, n)) / math.sqrt(n_queries)
    drawn = []
    for side, centre in zip(sides, denoised(*sides), strict=True):
        if side.ndim == 1:
            drawn.append(centre)
            continue
        residual = (side - side.mean(axis=1, keepdims=True)) * math.sqrt(n_queries / (n_queries - 1))
        drawn.append(centre[:, None] + (residual[:, which] + residual @ mix) / math.sqrt(2))
    return drawn[0], drawn[1]


def drawn_runs(k: int, signal: float, rng: np.random.Generator, n: int) -> tuple[Floats, Sides]:
    """The truth, and a sample."""
    z, weight = rng.normal(size=(2, k)), rng.gamma(1.0, 1.0, n)
    centres = z[0], 0.9 * z[0] + math.sqrt(1 - 0.81) * z[1]
    common = rng.normal(size=(k, n))
    sides = [
        centre[:, None] * weight + (common + rng.normal(size=(k, n))) * np.sqrt(weight / 2) / signal
        for centre in centres
    ]
    truth = coefficients(centres[0][:, None], centres[1][:, None])
    return truth, (sides[0], sides[1])


def outcome(low: float, high: float, truth: float) -> Outcome:
    # Coefficients are sums of fractions: equal ones may differ in their last digit.
    return low - 1e-9 <= truth <= high + 1e-9, truth > high + 1e-9, high - low


def ours(sides: Sides, truth: Floats, seed: int, fraction: float = 0.0) -> list[Outcome]:
    """Of the four coefficients; `fraction` of the population is in the sample."""
    values = coefficients(*sides)
    if np.isnan(values[:4]).any():
        return []
    error, bias = error_and_bias(*sides, QueryDraws(seed=seed))
    error, bias = error * math.sqrt(1 - fraction), bias * (1 - fraction)
    low, high = (side[:4] for side in ends(values, error, bias, sides[0].shape[1]))
    values, truth = values[:4], truth[:4]
    if not fraction and not seed:
        printed = correlate(*sides, draws=QueryDraws(seed=seed))
        assert (printed.kendall_tau.low, printed.rbo.high) == (low[0], high[3])
    if np.isnan(low).any():
        return []
    assert (low <= values + 1e-12).all()
    assert (values <= high + 1e-12).all()
    return [outcome(*each) for each in zip(low, high, truth, strict=True)]


def older(sides: Sides, truth: Floats, seed: int) -> list[Outcome]:
    """tau by the percentiles of the bootstrap, as before; by BCa; by the basic bootstrap; by Fisher's z with the jackknife."""
    from scipy.special import ndtr, ndtri, stdtrit

    n, rng = sides[0].shape[1], np.random.default_rng(seed)
    tau = coefficients(*sides)[0]
    weights = rng.multinomial(n, np.full(n, 1 / n), 500).T / n
    left_out = (np.ones((n, n)) - np.eye(n)) / (n - 1)
    drawn, jack = (
        _coefficients(*(np.round(side @ w, 12) for side in sides), 0.9)[0] for w in (weights, left_out)
    )
    drawn = drawn[~np.isnan(drawn)]
    low, high = np.percentile(drawn, (2.5, 97.5))
    z0 = ndtri(np.clip(((drawn < tau).mean() + (drawn <= tau).mean()) / 2, 0.001, 0.999))
    lean = jack.mean() - jack
    scale = (lean**2).sum() ** 1.5
    a = (lean**3).sum() / (6 * scale) if scale else 0.0
    shares = [ndtr(z0 + (z0 + q) / (1 - a * (z0 + q))) for q in (-1.96, 1.96)]
    z = np.arctanh(np.clip(jack, -0.999, 0.999))
    reach = stdtrit(n - 1, 0.975) * math.sqrt((n - 1) / n * ((z - z.mean()) ** 2).sum())
    middle = math.atanh(min(0.999, max(-0.999, tau)))
    both = (
        (low, high),
        np.quantile(drawn, shares),
        (2 * tau - high, 2 * tau - low),
        np.tanh((middle - reach, middle + reach)),
    )
    return [outcome(*each, truth[0]) for each in both] + [
        (not each[0] - 1e-9 <= tau <= each[1] + 1e-9, False, 0.0) for each in both
    ]


def correlation_cell(sides: Sides, how: str, n: int, reps: int, old: bool = False) -> Floats:
    """Shape (figures, 3): how often the truth was held, lay above; the mean width."""
    rng = np.random.default_rng(n)
    n_queries = sides[0].shape[1]
    truth = (
        coefficients(*(centre[:, None] for centre in denoised(*sides)))
        if how == "smoothed"
        else coefficients(*sides)
    )
    sample = {"halves": halved, "as measured": as_measured, "smoothed": smoothed}[how]
    rows = []
    with threadpool_limits(1):
        for seed in range(reps):
            drawn = sample(sides, rng, n)
            row = (
                older(drawn, truth, seed)
                if old
                else ours(drawn, truth, seed, n / n_queries if how == "halves" else 0.0)
            )
            rows += [row] if row else []
    return np.array(rows, float).mean(axis=0)


def drawn_cell(k: int, signal: float, n: int, reps: int) -> Floats:
    rng, rows = np.random.default_rng([k, n]), []
    with threadpool_limits(1):
        for seed in range(reps):
            truth, sides = drawn_runs(k, signal, rng, n)
            row = ours(sides, truth, seed)
            rows += [row] if row else []
    return np.array(rows, float).mean(axis=0)


def gain_cell(noise: tuple[float, float], n: int, reps: int = 400) -> tuple[float, float, float]:
    """Of tau of one way less that of another, both with the same official side of 20 runs; see `report`.

    Returns:
        How often the jackknife's interval holds the truth, how often percentiles do; how often these miss their point.
    """
    rng, outcomes, k = np.random.default_rng(n), [], 20
    for seed in range(reps):
        z, of_query = rng.normal(size=(3, k)), 2 * rng.normal(size=(k, n))
        centres = z[0], *(0.9 * z[0] + math.sqrt(1 - 0.81) * own for own in z[1:])
        sides = [
            centre[:, None] + of_query + 2 * share * rng.normal(size=(k, n))
            for centre, share in zip(centres, (0.0, *noise), strict=True)
        ]
        draws, weights = QueryDraws(seed=seed), rng.multinomial(n, np.full(n, 1 / n), 500).T / n
        truth, values, of_subsets, drawn = (
            tau_b_columns(first, official) - tau_b_columns(second, official)
            for official, first, second in (
                [centre[:, None] for centre in centres],
                [means(side)[:, None] for side in sides],
                [draws.subset_means(side) for side in sides],
                [side @ weights for side in sides],
            )
        )
        half = half_width(draws.standard_error(of_subsets, n), n)
        low, high = np.percentile(drawn, (2.5, 97.5))
        outcomes.append((abs(truth - values)[0] <= half + 1e-9, low - 1e-9 <= truth[0] <= high + 1e-9,
                         not low - 1e-9 <= values[0] <= high + 1e-9))  # fmt: skip
    held, by_percentiles, off_point = np.mean(outcomes, axis=0).tolist()
    return held, by_percentiles, off_point


def gain_section() -> str:
    rows = [
        [f"{noise[0]:g} and {noise[1]:g}", n, *map(percent, gain_cell(noise, n))]
        for noise in ((0.5, 0.5), (0.3, 0.8), (0.1, 1.0)) for n in (10, 21)
    ]  # fmt: skip
    return f"""## Cross-validation of `learn`: tau of one way less that of another

Student's t with the delete-d jackknife's standard error. 20 drawn runs, true means of each way and of the official side normal with a
correlation of 0.9; what a query adds is shared with the official side, twice as large, but for each way's own noise (as a share of that). 400 samples each.
The two taus are biased by noise, and so is their difference where one way is much noisier than the other.

{table(["own noise of the ways", "queries", "held the truth", "percentiles of the bootstrap (before)", "of which do not hold their point"], rows)}
"""


def mean_cell(values: Floats, n: int, reps: int = 2000) -> tuple[float, float, float]:
    """Of each row's mean, n columns drawn with replacement: the mean, least and greatest share of rows."""
    rng, held = np.random.default_rng(n), np.zeros(len(values))
    truth = values.mean(axis=1)
    for _ in range(reps):
        for row, drawn in enumerate(values[:, rng.integers(0, values.shape[1], n)].tolist()):
            low, high = interval(score(drawn), n)
            held[row] += low - 1e-9 <= truth[row] <= high + 1e-9
    shares = held / reps
    return float(shares.mean()), float(shares.min()), float(shares.max())


def kappa_cell(counts: Floats, n: int, reps: int = 4000) -> tuple[Floats, int]:
    rng, truth, rows = np.random.default_rng(n), kappa(counts).value, []
    for _ in range(reps):
        k = kappa(counts[rng.integers(0, len(counts), n)])
        if not math.isnan(k.low):
            rows.append(outcome(k.low, k.high, truth))
    return np.array(rows, float).mean(axis=0), reps - len(rows)


def kappa_counts(track: Path, least: int) -> Floats:
    """dl19's passages by label (from `least` on) and judgment (from 2 on), shape (queries, 2, 2)."""

    def read(path: Path) -> dict[str, dict[str, int]]:
        labels: dict[str, dict[str, int]] = {}
        for line in path.read_text().splitlines():
            query_id, _, doc_id, label = line.split()
            labels.setdefault(query_id, {})[doc_id] = int(label)
        return labels

    ours, official = read(track / "out" / "rubric.qrels"), read(track / "qrels.txt")
    counts = np.zeros((len(official), 2, 2), np.int64)
    for place, (query_id, judged) in enumerate(sorted(official.items())):
        for doc_id in ours.get(query_id, {}).keys() & judged.keys():
            counts[place, int(ours[query_id][doc_id] >= least), int(judged[doc_id] >= 2)] += 1
    return counts


def removal_taus(track: Path, repeats: int = 50) -> list[Floats]:
    """tau of each repeat, of each row and side of `simulate --judgments`."""
    import trecexam

    boards: list[Floats] = []
    original = removal.tau_b_columns

    def recorded(full: Floats, several: Floats) -> Floats:
        boards.append(original(full, several))
        return boards[-1]

    removal.tau_b_columns = recorded
    try:
        with trecexam.open_track(track) as found:
            found.simulate(judgments=True, repeats=repeats)
    finally:
        removal.tau_b_columns = original
    return boards


def removal_cell(taus: Sequence[Floats], n: int, reps: int = 200) -> tuple[float, float, float]:
    """How often the interval of n repeats holds another one: over all rows, and the least and greatest of a row."""
    rng, shares = np.random.default_rng(n), []
    for row in taus:
        held = 0
        for _ in range(reps):
            *seen, other = rng.choice(row, n + 1, replace=False)
            found = removal.prediction(np.array(seen))
            held += found[0] - 1e-9 <= other <= found[1] + 1e-9
        shares.append(held / reps)
    return float(np.mean(shares)), min(shares), max(shares)


def table(header: Sequence[str], rows: Iterator[Sequence[object]] | list[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def main(track: Path, ragval: Path | None) -> None:
    with OpenTrack(open_folder(track)) as loaders:
        loader = loaders.first
        compared = {(s.measure, s.official_measure): s for s in paired_scores(loader.load())}
    sides = {pair: (np.asarray(compared[pair].rubric), np.asarray(compared[pair].official)) for pair in PAIRS}
    settings = [("halves", 10), ("as measured", 10), ("as measured", 21), ("smoothed", 5), ("smoothed", 10), ("smoothed", 21), ("smoothed", 43)]  # fmt: skip
    many = [(pair, how, n) for pair in PAIRS for how, n in settings]
    olds = [(pair, how, 21) for pair in PAIRS[:-1] for how in ("as measured", "smoothed")]
    drawn = [(k, signal, n) for k in (4, 10, 30) for signal in (1.0, 0.3, 0.1) for n in (10, 25, 100)]
    with ProcessPoolExecutor(2) as pool:
        cells = [pool.submit(correlation_cell, sides[pair], how, n, REPS) for pair, how, n in many]
        old_cells = [pool.submit(correlation_cell, sides[pair], how, n, FEW, True) for pair, how, n in olds]
        drawn_cells = [pool.submit(drawn_cell, k, signal, n, FEW) for k, signal, n in drawn]
        parts = report(track, ragval, compared)
        found = {key: cell.result() for key, cell in zip(many, cells, strict=True)}
        old_found = {key: cell.result() for key, cell in zip(olds, old_cells, strict=True)}
        drawn_found = {key: cell.result() for key, cell in zip(drawn, drawn_cells, strict=True)}
    one = []
    for pair in PAIRS:
        shown = [percent(found[pair, how, n][0, 0]) for how, n in settings]
        one.append([" / ".join(pair), *shown])
    columns = [f"{how}, {n}" for how, n in settings]
    coefficient_rows = [
        [name, *(f"{percent(min(shares))} to {percent(max(shares))}" for shares in
         ([found[pair, how, n][place, 0] for pair in PAIRS] for how, n in settings))]
        for place, name in enumerate(NAMES)
    ]  # fmt: skip
    misses = [
        [
            name,
            *(
                f"{percent(np.mean([found[pair, how, n][place, 1] for pair in PAIRS]))}; {np.mean([found[pair, how, n][place, 2] for pair in PAIRS]):.2f}"
                for how, n in settings
            ),
        ]
        for place, name in enumerate(NAMES)
    ]
    kinds = ("percentiles (before)", "BCa", "basic", "Fisher's z, jackknife")
    old_rows = [
        [kind, *(f"{percent(min(s))} to {percent(max(s))}" for s in
         ([old_found[pair, how, 21][place, 0] for pair in PAIRS[:-1]] for how in ("as measured", "smoothed"))),
         percent(float(np.mean([old_found[pair, how, 21][place + 4, 0] for pair, how, _ in olds])))]
        for place, kind in enumerate(kinds)
    ]  # fmt: skip
    new = [f"{percent(min(s))} to {percent(max(s))}" for s in ([found[pair, how, 21][0, 0] for pair in PAIRS[:-1]] for how in ("as measured", "smoothed"))]  # fmt: skip
    drawn_rows = [
        [k, signal, *(f"{percent(drawn_found[k, signal, n][0, 0])} ({drawn_found[k, signal, n][0, 2]:.2f})" for n in (10, 25, 100))]
        for k in (4, 10, 30) for signal in (1.0, 0.3, 0.1)
    ]  # fmt: skip
    explained = (__doc__ or "").partition("- halves")[2]
    text = f"""# How often intervals hold the truth

Each interval that the program prints says 95%. Made by `python tests/benchmarks/interval_coverage.py TRACK FOLDER`
on {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}; {REPS:,} samples a cell of the first three
tables (a true 95% comes out as 93 to 97% then; of {FEW} as 91.5 to 98.5%). For users: [which interval each command prints](../../../examples/intervals.md).

The populations, of which the truth is known:

- halves{explained.rstrip()}

## What falls outside of 92 to 98%

- **tau_AP and RBO** hold too seldom in several cells, RBO most: both hang on the few runs at the top, whose order noise
  changes most, and the estimated bias is too small for them. Take them as rough; tau's and rho's are the ones to report.
- **tau with five queries**, and with many runs that queries hardly tell apart (the rows of drawn runs with signal 0.1; 30 runs with 0.3 and ten queries): too
  seldom. With 43 queries, where noise is small, two pairs hold more often than 98%.
- **Means of few and skewed values**: Student's t with five queries, single runs that fail on one or two of the queries (the least of a run), and RAGVAL's
  scores near the top of their scale with 20 or 50 questions, where a sample may have no bad answer at all.
- **Kappa where few queries have nearly all labels of 5**: a sample without those queries cannot know of them. And with five queries.
- **Tau of one way less that of another** (the cross-validation of `learn`) where one of them is far noisier: 84 to 86%.
- Abilities of `exam fit` were measured by themselves: [item response models](irt.md) (column 95% of theta).

## Rank correlations

Kendall's tau on TREC DL 2019, 37 runs: how many of the intervals hold the truth, by population and number of queries.

{table(["rubric / official", *columns], one)}

The four coefficients, least and greatest of the six pairs:

{table(["coefficient", *columns], coefficient_rows)}

How many lie below the truth, and how wide intervals are; means over the six pairs:

{table(["coefficient", *columns], misses)}

Other intervals of tau on 21 queries, least and greatest of the first five pairs, {FEW} samples each (the last one {REPS}); and how many do not hold the
coefficient that was measured (the last one cannot miss it):

{table(["interval", "as measured", "smoothed", "without its point"], [*old_rows, ["delete-d jackknife and denoised bias (now)", *new, "0.0%"]])}

Drawn runs, {FEW} samples each: how many intervals of tau hold the truth, and their mean width, by the number of queries.

{table(["runs", "signal", "10 queries", "25", "100"], drawn_rows)}

{parts}"""
    RESULTS.write_text(text)


def report(track: Path, ragval: Path | None, compared: dict) -> str:
    """The other intervals."""
    sizes = (5, 10, 21, 43)
    rows: list[Sequence[object]] = []
    for measures, side, name in (("P(rel=4)@20", "rubric", 0), ("nDCG@20", "rubric", 0), ("AP(rel=4)", "rubric", 0), ("Cover(rel=4)@20", "rubric", 0), ("nDCG@10", "official", 1), ("AP", "official", 1), ("P@20", "official", 1)):  # fmt: skip
        values = next(np.asarray(getattr(s, side)) for key, s in compared.items() if key[name] == measures)
        rows.append(
            [
                f"{measures} ({side})",
                *("{} ({} to {})".format(*map(percent, mean_cell(values, n, 200))) for n in sizes),
            ]
        )
    first = next(np.asarray(s.rubric) for key, s in compared.items() if key[0] == "P(rel=4)@20")
    rows.append(
        [
            "differences to the first run, P(rel=4)@20",
            *("{} ({} to {})".format(*map(percent, mean_cell(first[1:] - first[0], n, 200))) for n in sizes),
        ]
    )
    text = f"""## Means: leaderboards, their plots, the live page

Student's t over queries. As measured, with {", ".join(map(str, sizes))} queries: mean over the 37 runs, and the least and greatest of a run.

{table(["measure", *(f"{n} queries" for n in sizes)], rows)}
"""
    if ragval is not None:
        rows = []
        scores = {}
        for path in sorted(ragval.glob("*.jsonl.gz")):
            lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
            scores[path.name.split(".")[1]] = values = np.array(
                [[line[name] for line in lines] for name in ("truthfulness", "relevance")], float
            )
            rows += [
                [
                    f"{path.name.split('.')[1]}, {name}",
                    *(percent(mean_cell(row[None], n)[0]) for n in (20, 50, 100, 256)),
                ]
                for name, row in zip(("truthfulness", "relevance"), values, strict=True)
            ]
        gain = scores["naive_rag"][:1] - scores["baseline"][:1]
        rows.append(
            [
                "naive_rag less baseline, truthfulness",
                *(percent(mean_cell(gain, n)[0]) for n in (20, 50, 100, 256)),
            ]
        )
        text += f"""
## RAGVAL: means and differences

Student's t over questions, drawn with replacement from the 256 published answers a system.

{table(["system, score", *(f"{n} questions" for n in (20, 50, 100, 256))], rows)}
"""
    rows = []
    for least in (4, 5):
        counts = kappa_counts(track, least)
        cells = [kappa_cell(counts, n)[0] for n in sizes]
        rows.append(
            [f"rating {least}: {kappa(counts).value:.2f}", *(f"{percent(c[0])} ({c[2]:.2f})" for c in cells)]
        )
    rng = np.random.default_rng(0)
    alpha = np.array([3.0, 1.5, 1.0, 2.5])
    many = np.array([rng.multinomial(70, rng.dirichlet(alpha)) for _ in range(20000)]).reshape(-1, 2, 2)
    cells = [kappa_cell(many, n)[0] for n in sizes]
    rows.append(["drawn queries of 70 passages", *(f"{percent(c[0])} ({c[2]:.2f})" for c in cells)])
    text += f"""
## Kappa

Delta method with a query's passages together, Student's t with the effective number of queries. As measured: the 21 queries of TREC DL
2019 with replacement, FLAN-T5's labels from a rating on, relevant from judgment 2; and queries drawn from a Dirichlet distribution. In brackets the mean width.

{table(["kappa", *(f"{n} queries" for n in sizes)], rows)}
"""
    taus = removal_taus(track)
    rows = [[n, *map(percent, removal_cell(taus, n))] for n in (3, 5, 10, 20)]
    text += f"""
## `simulate --judgments`

Student's t prediction interval: how many hold tau of one more repeat. n and one more of 50 repeats on TREC DL 2019, {len(taus)} rows (measure, share
removed, holes or fill).

{table(["repeats", "mean", "least of a row", "greatest"], rows)}
"""
    return f"{text}\n{gain_section()}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
