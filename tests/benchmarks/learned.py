# ruff: noqa: E501
"""How good `trecexam learn` is on TREC DL 2019, and which part of it is worth what. Writes results/learned.md.

    python tests/benchmarks/learned.py TRACK

TRACK is a track of ../shared/dl19 with `pool_judged = true` and `min_relevant = 2`. Some minutes, after encoding.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from trecexam.features.learn.cross_validation import LEARNED, CrossValidation, Estimate, Row
from trecexam.features.learn.splits import Split, most_retrieved, queries_left_out, random_share
from trecexam.features.learn.validation import cross_validate
from trecexam.learning.arithmetic.learning import fit, predict
from trecexam.learning.arithmetic.pooled import PooledQueryToLearn
from trecexam.learning.arithmetic.process import KERNELS, Kernel
from trecexam.learning.learned_pool import gather_data
from trecexam.line.loader import TrackLoader
from trecexam.track import TrackFolder

RESULTS = Path(__file__).parent / "results" / "learned.md"
SHARES, TOP = (0.02, 0.05, 0.1, 0.2), (3, 5, 10, 20)
#: Columns of `query_features`, each with its standardised copy 8 further on.
GROUPS = {
    "cosine with the query": [0],
    "items": [1, 2],
    "late interaction": [3],
    "centroid": [4],
    "length": [5],
    "ratings": [6, 7],
}
INTRODUCTION = """# Learning from a track's own judgments: TREC DL 2019

Made by `python tests/benchmarks/learned.py TRACK` on the 21 queries, 37 runs and 4,339 judgments of `../shared/dl19`, with FLAN-T5-large's
recorded ratings. Judgments are hidden as `trecexam learn --cross-validate` hides them; kappa is on hidden judgments (>= 2 or not), tau
is Kendall's, of nDCG@10 leaderboards with these gains and with all judgments. 95% intervals are over queries: those of `kappa` and `correlate`;
of ranks moved and of differences Student's t with the delete-d jackknife's standard error, as tau's without its bias. Means over three draws of judgments where these are random.

**Caution:** the encoder, all-MiniLM-L6-v2, was trained on MS MARCO, whose passages and kind of questions these are: on other collections its
features may be worth less, and `--cross-validate` there says so. `c = 0.1` of the regressions is not chosen by the data (from 0.03 to 1: kappa .48 to .50
at 2% known, .57 to .58 at 10%; tau .83 to .88 with 3 passages a query, .89 to .91 with 5); the kernel is, by likelihood, and cuts are fitted, anew in each fit.

**What hurts**, by the last table: nothing by much. Without the cosine with the query, the items, late interaction or the centroid, tau of queries left out is higher by
.01 to .02 and most else is the same, with 21 queries within chance; standardised features cost .01 of kappa and gain .02 of tau where queries are left out. Ratings of the grader matter most
where a query has no judgments (tau .86 against .82), the Gaussian process where it has some (kappa .59 against .44).
"""


def main(root: Path) -> None:
    lines = [
        INTRODUCTION,
        f"Made on {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, with other work beside it.\n",
    ]
    with TrackLoader(TrackFolder.open(root)) as loader:
        track = loader.load()
        queries = gather_data(track).queries
        with tempfile.TemporaryDirectory() as folder:
            teams = teams_file(tuple(track.runs), Path(folder))
            lines += against_other_ways(cross_validate(track, known=SHARES, top=TOP, teams=teams).rows)
    with threadpool_limits(1):
        lines += ablation(queries)
        lines += seconds(queries)
    RESULTS.write_text("\n".join(lines))


def against_other_ways(rows: Sequence[Row]) -> list[str]:
    lines = [
        "## Against the other ways\n",
        "`grader` is the mean rating of a passage, cut where it agrees best with what is known. Runs whose names begin alike (`bm25...`, `idst_...`, `TUW19-...`) are a team.\n",
    ]
    lines += [
        "| hidden or known | way | kappa | tau | ranks moved | tau less the best other's |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = (figure(e) for e in (row.kappa, row.tau, row.shift, row.gain))
        lines.append(f"| {row.split} | {row.method} | {' | '.join(cells)} |")
    return [*lines, ""]


def figure(estimate: Estimate) -> str:
    if estimate.value != estimate.value:
        return ""
    interval = f" ({estimate.low:.2f} to {estimate.high:.2f})" if estimate.low == estimate.low else ""
    return f"{estimate.value:.2f}{interval}"


def teams_file(runs: Sequence[str], folder: Path) -> Path:
    """Runs whose names begin alike, up to a digit or a mark, as one team; baselines and p_* among them."""
    file = folder / "teams.tsv"
    file.write_text(
        "".join(
            f"{run}\t{re.split('[^A-Za-z]', run)[0].removesuffix('base').removesuffix('tuned')}\n"
            for run in runs
        )
    )
    return file


def ablation(queries: tuple[PooledQueryToLearn, ...]) -> list[str]:
    judgments, ranks = [q.judgments for q in queries], [q.ranks for q in queries]
    splits = [
        *(random_share(judgments, share, 3, 0) for share in (0.02, 0.1, 0.2)),
        *(most_retrieved(judgments, ranks, k) for k in (3, 5, 10)),
        queries_left_out(judgments),
    ]
    every = list(range(16))
    embedding = [c for c in every if c % 8 < 6]
    variants: dict[str, tuple[list[int], Sequence[Kernel]]] = {
        "all": (every, KERNELS),
        "no Gaussian process": (every, ()),
        "kernel .1 + exp((cos - 1)/.3), noise .3, not chosen": (every, (Kernel(),)),
        **{
            f"without {name}": ([c for c in every if c % 8 not in out], KERNELS)
            for name, out in GROUPS.items()
        },
        "without standardised features": (every[:8], KERNELS),
        "without ratings, no Gaussian process": (embedding, ()),
        "ratings alone": ([6, 7, 14, 15], KERNELS),
        "ratings alone, no Gaussian process": ([6, 7, 14, 15], ()),
    }
    lines = ["## What each part is worth\n", "No other encoder was at hand, so none is compared.\n"]
    lines += [
        "| | kappa, 2% known | 10% | 20% | tau, 3 a query | 5 | 10 | tau, queries left out |",
        "|---|" + "---|" * 7,
    ]
    for name, (columns, kernels) in variants.items():
        some = tuple(
            replace(q, passages=replace(q.passages, features=q.passages.features[:, columns]))
            for q in queries
        )
        validation = CrossValidation(some, 2, resamples=1, kernels=kernels)
        learned = [learned_row(validation, split) for split in splits]
        figures = [
            *(f"{row.kappa.value:.3f}" for row in learned[:3]),
            *(f"{row.tau.value:.3f}" for row in learned[3:]),
        ]
        lines.append(f"| {name} | {' | '.join(figures)} |")
    return [*lines, ""]


def learned_row(validation: CrossValidation, split: Split) -> Row:
    return next(row for row in validation.rows(split) if row.method == LEARNED)


def seconds(queries: tuple[PooledQueryToLearn, ...]) -> list[str]:
    lines = [
        "## Time\n",
        "After encoding; CPU seconds of one core, the best of five.\n",
        "| judgments known | fit | prediction |",
        "|---|---|---|",
    ]
    for share in (0.1, 0.5, 1.0):
        rng = np.random.default_rng(0)
        seen = [q.hiding(rng.random(len(q.doc_ids)) >= share).passages for q in queries]
        times = []
        for _ in range(5):
            start = time.process_time()
            learned = fit(seen)
            fitted = time.process_time()
            for passages in seen:
                predict(learned, passages)
            times.append((fitted - start, time.process_time() - fitted))
        best = min(times)
        lines.append(
            f"| {share:.0%} of {sum(map(len, (q.doc_ids for q in queries))):,} | {best[0]:.2f} s | {best[1]:.2f} s |"
        )
    return [*lines, ""]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
