# ruff: noqa: E501
"""Accuracy of learning from judgments on four collections. Writes results/learned.md.

    python tests/benchmarks/learned.py WORK --part boards --draws 3     (and teams, intervals, settle, plans, next)
    python tests/benchmarks/learned.py WORK

WORK is a folder for the tracks, whose texts are encoded once, and for the results of each part, which resumes
after a stop. Without --part the page is written from the available results. Data is ../shared/collections and ../shared/dl19.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "helpers"))

from learned_collections import (
    ALL_JUDGED,
    RANDOM,
    SETTINGS,
    SHALLOW,
    TEN,
    TOP,
    Collection,
    K,
    Setting,
    board,
    collection,
    ends,
    judged_alone,
    kappas,
    knowing,
    plain_regression,
    ranks_of,
    resampled,
    taus,
    true_scores,
)
from learned_judging import (
    Cells,
    Queries,
    Rows,
    next_cells,
    next_table,
    plan_cells,
    plan_table,
    settle_cells,
    settle_table,
)
from threadpoolctl import threadpool_limits

from trecexam.extensions.learn.arithmetic.check import (
    Way,
    compare,
    condensed,
    expectations,
    labels,
    zeros,
)
from trecexam.extensions.learn.arithmetic.learning import fit
from trecexam.extensions.learn.arithmetic.passages import Floats
from trecexam.extensions.learn.arithmetic.scores import expected_scores
from trecexam.extensions.learn.learned_board import MIN_SHARE
from trecexam.scores.correlation import half_width

RESULTS = Path(__file__).parent / "results" / "learned.md"
OF_PROGRAM: dict[str, Way] = {
    "learned": expectations,
    "zero": zeros,
    "condensed": condensed,
    "labels": labels,
}
WAYS = (*OF_PROGRAM, "plain")
INTERVALS = ("all", "90% at random", "75% at random", RANDOM[3])


def board_cells(work: Path, draws: int) -> Cells:
    """Tau, kappa and verdicts of each way, by what is judged."""
    for setting in (*SETTINGS, ALL_JUDGED):
        for design in (*TOP, *RANDOM):
            yield (
                f"{setting}|{design}",
                partial(_boards, work, setting, design, draws if design in RANDOM else 1),
            )


def _boards(work: Path, setting: Setting, design: str, draws: int) -> Any:
    of = collection(work, setting)
    truth, weights = of.truth, resampled(len(of.queries))
    pool_truth = true_scores(of.queries, of.relevant)[0]
    found: dict[str, list[Floats]] = {}
    verdicts = []
    for draw in range(draws):
        seen = judged_alone(of.queries, design, draw)
        learned = fit(seen)
        gains, plain_labels = plain_regression(seen)
        values = {
            name: board(seen, way(seen, learned)) for name, way in OF_PROGRAM.items() if name != "learned"
        }
        values["learned"] = expected_scores(learned, seen, K, of.relevant, fits=False).values[0]
        values["plain"] = board(seen, gains)
        found.setdefault("level", []).append((values["learned"] - pool_truth).mean(axis=0) @ weights)
        for name, of_way in values.items():
            found.setdefault(f"tau {name}", []).append(taus(of_way, truth, weights))
            found.setdefault(f"ten {name}", []).append(taus(of_way, truth, weights, TEN))
        by_regression = labels(seen, fit(seen, neighbours=False))
        for name, given in (
            ("labels", labels(seen, learned)),
            ("regression", by_regression),
            ("plain", plain_labels),
        ):
            found.setdefault(f"kappa {name}", []).append(kappas(of, seen, given, weights))
        try:
            compared = compare(seen, OF_PROGRAM, of.relevant)
            board_best = compared.best("learned", ("zero", "condensed"))
            verdicts.append([board_best, compared.best("labels", ("zero",))])
        except ValueError:
            verdicts.append(["refused", "zero"])
    means = {name: np.mean(of_way, axis=0) for name, of_way in found.items()}
    means["over"] = means["tau learned"] - np.maximum(means["tau zero"], means["tau condensed"])
    means["kappa over"] = means["kappa labels"] - means["kappa plain"]
    return {
        **{name: ends(of_way, len(of.queries)) for name, of_way in means.items()},
        "draws": [{name: float(found[f"tau {name}"][draw][0]) for name in WAYS} for draw in range(draws)],
        "verdicts": verdicts,
    }


def tau_table(rows: Rows) -> Iterator[str]:
    """Tau of all runs, and of the ten best."""
    yield "| | judged | zero | condensed | learned leaderboard | labels of `fill` | plain regression | learned less the best of zero and condensed | level |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for key, row in rows.items():
        cells = [f"{row[f'tau {way}'][0]:.2f} / {row[f'ten {way}'][0]:.2f}" for way in WAYS]
        low, high = row["tau learned"][1:]
        learned = f"**{row['tau learned'][0]:.2f}** ({low:.2f} to {high:.2f}) / {row['ten learned'][0]:.2f}"
        yield f"| {_names(key)} | {cells[1]} | {cells[2]} | {learned} | {cells[3]} | {cells[4]} | {_signed(row['over'])} | {row['level'][0]:+.2f} |"


def kappa_table(rows: Rows) -> Iterator[str]:
    """Kappa of hidden judgments where a random share is known."""
    yield (
        "| | judged | learned labels | without neighbours | plain regression | learned less plain regression |"
    )
    yield "|---|---|---|---|---|---|"
    for key, row in rows.items():
        if key.split("|")[1] in RANDOM[:3]:
            cells = [
                f"{value:.2f} (from {low:.2f})"
                for value, low, _ in (row[f"kappa {way}"] for way in ("labels", "regression", "plain"))
            ]
            yield f"| {_names(key)} | {' | '.join(cells)} | {_signed(row['kappa over'])} |"


def verdict_table(rows: Rows) -> Iterator[str]:
    """How often the verdict's way is as good as the best."""
    yield "| | cases | leaderboard: verdict within .02 | always learned within .02 | refused | refused, though best | shown, though more than .02 worse | `fill`: verdict within .02 | always learned within .02 |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for setting in (*map(str, (*SETTINGS, ALL_JUDGED)), "all"):
        counts = np.zeros(7)
        n = 0
        for key, row in rows.items():
            if setting not in (key.split("|")[0], "all"):
                continue
            for found, (of_board, of_fill) in zip(row["draws"], row["verdicts"], strict=True):
                n += 1
                others = max(found["zero"], found["condensed"])
                best, best_fill = max(others, found["learned"]), max(found["labels"], found["zero"])
                learned_is_good = found["learned"] >= best - 0.02
                refused = of_board != "learned"
                chosen = found.get(of_board, others)
                counts += [
                    chosen >= best - 0.02,
                    learned_is_good,
                    refused,
                    refused and found["learned"] >= others,
                    not refused and not learned_is_good,
                    found[of_fill] >= best_fill - 0.02,
                    found["labels"] >= best_fill - 0.02,
                ]
        if n:
            yield f"| {setting} | {n} | {' | '.join(f'{count / n:.0%}' for count in counts)} |"


def _names(key: str) -> str:
    return key.replace("|", " | ")


def _signed(figure: Sequence[float]) -> str:
    return f"{figure[0]:+.2f} ({figure[1]:+.2f} to {figure[2]:+.2f})"


def team_cells(work: Path, draws: int) -> Cells:
    """By how many ranks runs are off: of a team that is left out, and of the encoder's kind by what is judged."""
    for setting in SETTINGS:
        yield f"{setting}|left out", partial(_left_out, work, setting)
        for design in (*TOP, *RANDOM[:2]) if setting.collection != "dl19" else ():
            yield (
                f"{setting}|{design}",
                partial(_encoders_kind, work, setting, design, draws if design in RANDOM else 1),
            )


def _left_out(work: Path, setting: Setting) -> Any:
    """Of each team how far its runs move where what they alone have is not judged."""
    of = collection(work, setting)
    moved = {}
    for team in sorted(set(of.teams)):
        own = [at for at, other in enumerate(of.teams) if other == team]
        seen = []
        for query in of.queries:
            passages = np.arange(len(query.doc_ids))
            others = np.isin(passages, np.delete(query.ranks, own, axis=0))
            seen.append(knowing(query, others | ~np.isin(passages, query.ranks[own])))
        moved[team] = _ranks_off(of, seen, own)
    return moved


def _encoders_kind(work: Path, setting: Setting, design: str, draws: int) -> Any:
    of = collection(work, setting)
    own = [at for at, team in enumerate(of.teams) if team == "minilm"]
    every = [_ranks_off(of, judged_alone(of.queries, design, draw), own) for draw in range(draws)]
    return {way: np.mean([off[way] for off in every], axis=0).tolist() for way in every[0]}


def _ranks_off(of: Collection, seen: Queries, runs: list[int]) -> dict[str, list[float]]:
    """Rank by all judgments less the rank here, of these runs: above 0 is overrated."""
    learned = fit(seen, neighbours=False)
    blind = fit(seen, without=("cosine",), neighbours=False)
    scores = {
        "learned": expected_scores(learned, seen, K, of.relevant, fits=False).means[0],
        "without cosine": expected_scores(blind, seen, K, of.relevant, fits=False).means[0],
        "zero": board(seen, zeros(seen, learned)).mean(axis=1),
    }
    true_ranks = ranks_of(of.truth.mean(axis=1))[runs]
    return {way: (true_ranks - ranks_of(means)[runs]).tolist() for way, means in scores.items()}


def team_table(rows: Rows) -> Iterator[str]:
    """Ranks that runs of a team move when it is left out."""
    ways = ("zero", "learned", "without cosine")
    yield "| | teams | zero, all teams | learned | without cosine | zero, the encoder's team | learned | without cosine |"
    yield "|---|---|---|---|---|---|---|---|"
    for setting in map(str, SETTINGS):
        moved = rows.get(f"{setting}|left out")
        if moved:
            every = [
                f"{np.mean(np.abs(np.concatenate([of[way] for of in moved.values()]))):.1f}" for way in ways
            ]
            own = [
                f"{np.mean(np.abs(moved['minilm'][way])):.1f} ({', '.join(f'{off:+.0f}' for off in moved['minilm'][way])})"
                if "minilm" in moved
                else ""
                for way in ways
            ]
            yield f"| {setting} | {len(moved)} | {' | '.join([*every, *own])} |"


def encoder_table(rows: Rows) -> Iterator[str]:
    """Ranks of the runs of the encoder's kind by what is judged."""
    yield "| | judged | zero | learned | learned without cosine |"
    yield "|---|---|---|---|---|"
    for key, row in rows.items():
        if not key.endswith("|left out"):
            cells = [
                ", ".join(f"{off:+.0f}" for off in row[way]) for way in ("zero", "learned", "without cosine")
            ]
            yield f"| {_names(key)} | {' | '.join(cells)} |"


def interval_cells(work: Path, draws: int) -> Cells:
    """Whether intervals hold the mean over all queries, in samples of the queries, with replacement."""
    for draw in range(draws):
        for setting in SHALLOW:
            for design in INTERVALS:
                yield f"{setting}|{design}|{draw}", partial(_held, work, setting, design, draw)


def _held(work: Path, setting: Setting, design: str, draw: int) -> Any:
    of = collection(work, setting)
    n = len(of.queries)
    drawn = np.random.default_rng([draw, 9]).integers(0, n, n).tolist()
    sample = [
        replace(of.queries[at], query_id=f"{of.queries[at].query_id}.{number}")
        for number, at in enumerate(drawn)
    ]
    if design == "all":
        seen = [knowing(query, query.judged) for query in sample]
    else:
        seen = judged_alone(sample, design, draw)
    scores = expected_scores(fit(seen, neighbours=False), seen, K, of.relevant, draws=100)
    off = scores.means - true_scores(of.queries, of.relevant).mean(axis=-1)
    held = np.abs(off) <= half_width(np.sqrt(scores.variances()), n)
    return {"held": held.mean(axis=1).tolist(), "off": off.mean(axis=1).tolist()}


def interval_table(rows: Rows) -> Iterator[str]:
    """Shares of runs and samples whose interval holds the truth."""
    yield "| | judged | samples | nDCG@10 | AP | nDCG@10 less the truth | AP less the truth |"
    yield "|---|---|---|---|---|---|---|"
    for setting in map(str, SHALLOW):
        for design in INTERVALS:
            cells = [row for key, row in rows.items() if key.startswith(f"{setting}|{design}|")]
            if cells:
                held, off = (np.mean([row[name] for row in cells], axis=0) for name in ("held", "off"))
                yield f"| {setting} | {design} | {len(cells)} | {held[0]:.0%} | {held[1]:.0%} | {off[0]:+.3f} | {off[1]:+.3f} |"


PARTS = {
    "boards": board_cells,
    "teams": team_cells,
    "intervals": interval_cells,
    "settle": settle_cells,
    "plans": plan_cells,
    "next": next_cells,
}
INTRODUCTION = """# Learning from a track's judgments, measured

Made by `python tests/benchmarks/learned.py WORK` on `../shared/collections` (60 queries each, 37 runs of 11 teams) and `../shared/dl19` (21 queries, 37 runs),
on {machine}, with other work beside it. *Depth* is how many ranks of each run are pooled; *all judged*: with the judged passages that no run has.
All of the pool is judged, then all but a design is hidden: of each query the passages that runs retrieve most, or a random share (means over {draws} draws).
The truth is nDCG@10 by all judgments. In `collections` three runs are of the encoder's kind (team `minilm`), and some are broken on purpose, which flatters tau of all runs:
the second figure is tau among the ten best. Intervals are 95%: Student's t times the standard deviation over 500 bootstrap samples of the queries.
The encoder, all-MiniLM-L6-v2, was trained on MS MARCO, whose passages DL 2019 has.
*Plain regression* is scikit-learn's logistic regression (C = 1) on BM25, reciprocal rank fusion and cosine, a step of the scale each.
"""
SECTIONS = (
    (
        "How well are runs ordered?",
        "tau of all runs / of the ten best, by nDCG@10. Level: mean expected nDCG@10 of the learned leaderboard, less what it is once the pool is judged.",
        "boards",
        tau_table,
    ),
    (
        "How good are labels?",
        "Cohen's kappa of hidden judgments, relevant or not; from: the lower end of the interval. *Without neighbours*: without the Gaussian process.",
        "boards",
        kappa_table,
    ),
    (
        "How often is the verdict right?",
        "A case is a collection, a design and a draw. Leaderboard: learned, unjudged = 0 and condensed lists, by `check.compare`; `fill`: learned labels or holes left open. Within .02: tau with the way of the verdict, less the best way's.",
        "boards",
        verdict_table,
    ),
    (
        "How fair is it to a team that is left out?",
        "What a team's runs alone have in the pool is not judged, all else is. Mean ranks that its runs move; of the encoder's team each run, + is overrated. All collections have 37 runs.",
        "teams",
        team_table,
    ),
    (
        "How fair is it to runs of the encoder's kind?",
        "The true rank less the rank here, of the runs `bm25_rerank_minilm`, `minilm` and `rrf_minilm_bm25`: + is overrated.",
        "teams",
        encoder_table,
    ),
    (
        "Do intervals hold?",
        f"Shares of runs and samples whose 95% interval holds the mean over all queries once the pool is judged; samples of the queries are drawn with replacement. The program gives intervals where all of the pool is judged, or a random {MIN_SHARE:.0%} of it.",
        "intervals",
        interval_table,
    ),
    (
        "Are the probabilities of `settle` right?",
        "All pairs of runs, in a random order, in samples of two thirds of the queries. ECE: expected calibration error in ten bins; sharpness: the mean distance from 0.5; decided: with a probability of 95% or more. The first five: the mean probability that the five runs that lead are those of full judging, and how often they were.",
        "settle",
        settle_table,
    ),
    (
        "How many judgments decide a claim?",
        "Means over random pairs of runs, beyond the three most retrieved passages of each query; decided is a probability of 95%, by the same model in all columns. Ranks apart: by all judgments.",
        "plans",
        plan_table,
    ),
    (
        "What to judge next?",
        "tau of the learned leaderboard, of all runs / of the ten best, in samples of two thirds of the queries. `retrieved` has a tenth drawn at random.",
        "next",
        next_table,
    ),
)


def page(found: dict[str, Rows]) -> str:
    """results/learned.md."""
    draws = max((len(row["draws"]) for row in found.get("boards", {}).values()), default=0)
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    lines = [INTRODUCTION.format(machine=machine, draws=draws)]
    for title, text, part, table in SECTIONS:
        lines += [f"## {title}\n", f"{text}\n", *table(found.get(part, {})), ""]
    return "\n".join(lines)


def main() -> None:
    """A part, or the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--draws", type=int, default=3)
    chosen = parser.parse_args()
    files = {name: chosen.work / f"{name}.json" for name in PARTS}
    found = {name: json.loads(file.read_text()) for name, file in files.items() if file.exists()}
    if chosen.part is None:
        RESULTS.write_text(page(found))
        return
    rows = found.get(chosen.part, {})
    for key, cell in PARTS[chosen.part](chosen.work.resolve(), chosen.draws):
        if key not in rows:
            with threadpool_limits(1):
                rows[key] = cell()
            files[chosen.part].write_text(json.dumps(rows))
            print(key, flush=True)


if __name__ == "__main__":
    main()
