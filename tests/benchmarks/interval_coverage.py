# ruff: noqa: E501
"""Coverage of the intervals that the program prints: prints the tables of tests/benchmarks/results/intervals.md.

    python tests/benchmarks/interval_coverage.py TRACK [FOLDER of RAGVAL's answers]

TRACK is one of TREC DL 2019 with an update's out/ (37 runs, 21 queries, recorded grades). The page says what the
populations are, whose truth is known. Takes some five minutes on two cores; tests/scores/test_interval_coverage.py
holds a small part of it.
"""

from __future__ import annotations

import gzip
import json
import math
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from trecexam.extensions.simulation.arithmetic import tables as simulated
from trecexam.features.correlation.paired_scores import PairedScores, paired_scores
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.track_graders import open_folder
from trecexam.scores import correlation
from trecexam.scores.correlation import correlate, ends, error_and_bias, half_width
from trecexam.scores.kappa import kappa
from trecexam.scores.leaderboard import interval, score
from trecexam.scores.rank_correlation import QueryDraws, denoised, means, official_means, tau_b_columns

NAMES = ("Kendall's tau", "Spearman's rho", "tau_AP", "RBO")
PAIRS = (
    ("P(rel=4)@20", "nDCG@10"), ("nDCG@20", "P@20"), ("AP(rel=4)", "AP"),
    ("Cover(rel=4)@20", "nDCG@10"), ("alpha_nDCG@20", "AP"), ("nDCG@20", "official_leaderboard"),
)  # fmt: skip
REPS, FEW = 400, 150
#: Numbers of queries.
SIZES, SIZES_DRAWN = (5, 10, 21, 43), (10, 25, 100)
Pair = tuple[str, str]
Row = Sequence[object]
Floats = np.ndarray
#: Both sides' values of a sample of queries.
Sides = tuple[Floats, Floats]
#: What an interval does: held the truth, lies below it, its width.
Outcome = tuple[bool, bool, float]


def coefficients(rubric: Floats, official: Floats) -> Floats:
    return correlation.coefficients(means(rubric)[:, None], official_means(official)[:, None])[:, 0]


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
        # Four drawn runs are too few for a printed interval.
        assert np.isnan(printed.kendall_tau.low) or (printed.kendall_tau.low, printed.rbo.high) == (
            low[0],
            high[3],
        )
    if np.isnan(low).any():
        return []
    assert (low <= values + 1e-12).all()
    assert (values <= high + 1e-12).all()
    return [outcome(*each) for each in zip(low, high, truth, strict=True)]


def correlation_cell(sides: Sides, how: str, n: int) -> Floats:
    """Shape (figures, 3): how often the truth was held, lay above; the mean width."""
    rng = np.random.default_rng(n)
    share = n / sides[0].shape[1] if how == "halves" else 0.0
    population = [centre[:, None] for centre in denoised(*sides)] if how == "smoothed" else sides
    truth = coefficients(*population)
    sample = {"halves": halved, "as measured": as_measured, "smoothed": smoothed}[how]
    with threadpool_limits(1):
        rows = [ours(sample(sides, rng, n), truth, seed, share) for seed in range(REPS)]
    return np.array([row for row in rows if row], float).mean(axis=0)


def drawn_cell(k: int, signal: float, n: int, reps: int) -> Floats:
    rng, rows = np.random.default_rng([k, n]), []
    with threadpool_limits(1):
        for seed in range(reps):
            truth, sides = drawn_runs(k, signal, rng, n)
            row = ours(sides, truth, seed)
            rows += [row] if row else []
    return np.array(rows, float).mean(axis=0)


def gain_cell(noise: tuple[float, float], n: int, reps: int = 400) -> tuple[float, float, float]:
    """Of tau of one way less that of another, both with the same official side of 20 runs.

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


def gain_rows() -> list[Row]:
    return [
        [f"{noise[0]:g} and {noise[1]:g}", n, *map(percent, gain_cell(noise, n))]
        for noise in ((0.5, 0.5), (0.3, 0.8), (0.1, 1.0)) for n in (10, 21)
    ]  # fmt: skip


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


def kappa_cell(counts: Floats, n: int, reps: int = 4000) -> Floats:
    rng, truth = np.random.default_rng(n), kappa(counts).value
    found = [kappa(counts[rng.integers(0, len(counts), n)]) for _ in range(reps)]
    return np.array([outcome(k.low, k.high, truth) for k in found if not math.isnan(k.low)], float).mean(
        axis=0
    )


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
    original = simulated.tau_b_columns

    def recorded(full: Floats, several: Floats) -> Floats:
        boards.append(original(full, several))
        return boards[-1]

    simulated.tau_b_columns = recorded
    try:
        with trecexam.open_track(track) as found:
            found.simulate(judgments=True, repeats=repeats)
    finally:
        simulated.tau_b_columns = original
    return boards


def removal_cell(taus: Sequence[Floats], n: int, reps: int = 200) -> tuple[float, float, float]:
    """How often the interval of n repeats holds another one: over all rows, and the least and greatest of a row."""
    rng, shares = np.random.default_rng(n), []
    for row in taus:
        held = 0
        for _ in range(reps):
            *seen, other = rng.choice(row, n + 1, replace=False)
            found = simulated.prediction(np.array(seen))
            held += found[0] - 1e-9 <= other <= found[1] + 1e-9
        shares.append(held / reps)
    return float(np.mean(shares)), min(shares), max(shares)


def percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def span(shares: Sequence[float]) -> str:
    return f"{percent(min(shares))} to {percent(max(shares))}"


def table(title: str, header: Sequence[object], rows: Sequence[Row]) -> None:
    print(f"\n{title}\n")
    for row in (header, ["---"] * len(header), *rows):
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


def correlations(sides: dict[Pair, Sides]) -> None:
    settings = [("halves", 10), *((how, n) for how, sizes in
                (("as measured", (10, 21)), ("smoothed", (5, 10, 21, 43))) for n in sizes)]  # fmt: skip
    drawn = [(k, signal, n) for k in (4, 10, 30) for signal in (1.0, 0.3, 0.1) for n in SIZES_DRAWN]
    with ProcessPoolExecutor(2) as pool:
        cells = {
            (pair, *of): pool.submit(correlation_cell, sides[pair], *of) for pair in PAIRS for of in settings
        }
        of_drawn = {of: pool.submit(drawn_cell, *of, FEW) for of in drawn}
        found = {key: cell.result() for key, cell in cells.items()}
        found_drawn = {of: cell.result() for of, cell in of_drawn.items()}
    columns = [f"{how}, {n}" for how, n in settings]

    def of_pairs(place: int, figure: int, setting: tuple[str, int]) -> list[float]:
        return [float(found[pair, *setting][place, figure]) for pair in PAIRS]

    table("Kendall's tau: share held", ["rubric / official", *columns],
          [[" / ".join(pair), *(percent(found[pair, *of][0, 0]) for of in settings)] for pair in PAIRS])  # fmt: skip
    table("Share held, least and greatest of the pairs", ["coefficient", *columns],
          [[name, *(span(of_pairs(place, 0, of)) for of in settings)] for place, name in enumerate(NAMES)])  # fmt: skip
    table("Below the truth; width", ["coefficient", *columns],
          [[name, *(f"{percent(np.mean(of_pairs(place, 1, of)))}; {np.mean(of_pairs(place, 2, of)):.2f}" for of in settings)]
           for place, name in enumerate(NAMES)])  # fmt: skip
    table("Drawn runs: share held (width)", ["runs", "signal", *SIZES_DRAWN],
          [[k, signal, *(f"{percent(found_drawn[k, signal, n][0, 0])} ({found_drawn[k, signal, n][0, 2]:.2f})" for n in SIZES_DRAWN)]
           for k, signal in dict.fromkeys(of[:2] for of in drawn)])  # fmt: skip


def of_means(compared: dict[Pair, PairedScores]) -> None:
    of_rubric = {key[0]: np.asarray(scores.rubric) for key, scores in compared.items()}
    of_official = {key[1]: np.asarray(scores.official) for key, scores in compared.items()}
    values = {
        f"{name} (rubric)": of_rubric[name]
        for name in ("P(rel=4)@20", "nDCG@20", "AP(rel=4)", "Cover(rel=4)@20")
    }
    values |= {f"{name} (official)": of_official[name] for name in ("nDCG@10", "AP", "P@20")}
    first = of_rubric["P(rel=4)@20"]
    values["differences to the first run, P(rel=4)@20"] = first[1:] - first[0]
    table("Means: share held (least and greatest of a run)", ["measure", *SIZES],
          [[name, *("{} ({} to {})".format(*map(percent, mean_cell(of, n, 200))) for n in SIZES)] for name, of in values.items()])  # fmt: skip


def of_answers(folder: Path) -> None:
    values, names = {}, ("truthfulness", "relevance")
    for path in sorted(folder.glob("*.jsonl.gz")):
        lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        for name in names:
            values[f"{path.name.split('.')[1]}, {name}"] = np.array([[line[name] for line in lines]], float)
    values["naive_rag less baseline, truthfulness"] = (
        values["naive_rag, truthfulness"] - values["baseline, truthfulness"]
    )
    sizes = (20, 50, 100, 256)
    table("RAGVAL", ["system, score", *sizes],
          [[name, *(percent(mean_cell(of, n)[0]) for n in sizes)] for name, of in values.items()])  # fmt: skip


def of_kappa(track: Path) -> None:
    rng = np.random.default_rng(0)
    many = np.array([rng.multinomial(70, rng.dirichlet([3.0, 1.5, 1.0, 2.5])) for _ in range(20000)])
    drawn = {f"rating {least}": kappa_counts(track, least) for least in (4, 5)}
    drawn["drawn queries of 70 passages"] = many.reshape(-1, 2, 2)
    cells = {name: [kappa_cell(counts, n) for n in SIZES] for name, counts in drawn.items()}
    table("Kappa: share held (width)", ["kappa", *SIZES],
          [[name, *(f"{percent(cell[0])} ({cell[2]:.2f})" for cell in of)] for name, of in cells.items()])  # fmt: skip


def main(track: Path, ragval: Path | None) -> None:
    with OpenTrack(open_folder(track)) as loaders:
        compared = {(s.measure, s.official_measure): s for s in paired_scores(loaders.first.load())}
    correlations(
        {pair: (np.asarray(compared[pair].rubric), np.asarray(compared[pair].official)) for pair in PAIRS}
    )
    of_means(compared)
    if ragval is not None:
        of_answers(ragval)
    of_kappa(track)
    taus = removal_taus(track)
    table("`simulate --judgments`", ["repeats", "mean", "least of a row", "greatest"],
          [[n, *map(percent, removal_cell(taus, n))] for n in (3, 5, 10, 20)])  # fmt: skip
    table("Cross-validation of `learn`", ["own noise", "queries", "held the truth", "percentiles", "without their point"],
          gain_rows())  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
