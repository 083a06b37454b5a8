# ruff: noqa: E501
"""How good `trecexam learn` is on TREC DL 2019, and which part of it is worth what. Writes results/learned.md.

    python tests/benchmarks/learned.py TRACK [WORDLLAMA]

TRACK is a track of ../shared/dl19 with `pool_judged = true` and `min_relevant = 2`; vectors are kept in it. WORDLLAMA is the
folder `wordllama` of the unpacked wheel of wordllama 0.4.0.post1, of which the weights are read. A quarter of an hour, after encoding.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from learned_encoders import Reduced, TokenMeans, latent_semantic, word_embeddings, word_llama
from learned_goals import carried_over, goals
from learned_nested import Choice, nested
from threadpoolctl import threadpool_limits

from trecexam.extensions.learn.arithmetic.learning import fit, predict
from trecexam.extensions.learn.arithmetic.pooled import PooledQueryToLearn
from trecexam.extensions.learn.arithmetic.process import KERNELS, Kernel
from trecexam.extensions.learn.cross_validation import LEARNED, CrossValidation, Estimate, Row
from trecexam.extensions.learn.encoding import TrackVectors
from trecexam.extensions.learn.learned_pool import gather_data, track_encoder
from trecexam.extensions.learn.splits import Split, most_retrieved, queries_left_out, random_share
from trecexam.extensions.learn.validation import cross_validate
from trecexam.line.assessment import Assessment
from trecexam.line.loader import TrackLoader
from trecexam.track import TrackFolder

RESULTS = Path(__file__).parent / "results" / "learned.md"
SHARES, TOP = (0.02, 0.05, 0.1, 0.2), (3, 5, 10, 20)
#: How often the queries are halved.
DRAWS = 10
#: Columns of `query_features`, each with its standardised copy 8 further on.
GROUPS = {
    "cosine with the query": [0],
    "items": [1, 2],
    "late interaction": [3],
    "centroid": [4],
    "length": [5],
    "ratings": [6, 7],
}
ENCODERS = (
    "No other sentence encoder was at hand. `64 principal axes` are MiniLM's own vectors cut down; the others have one vector a word or word piece, "
    "which knows nothing of its neighbours: MiniLM's own input, WordLlama 0.4.0.post1 (MIT licence), and TF-IDF with truncated SVD of the pool's passages, "
    "which needs no model and no download. Those lose .06 to .09 of kappa at 10% known and .07 to .27 of tau with 5 judged a query: none is offered in place of the extra `offline`.\n"
)
INTRODUCTION = """# Learning from a track's own judgments: TREC DL 2019

Made by `python tests/benchmarks/learned.py TRACK` on the 21 queries, 37 runs and 4,339 judgments of `../shared/dl19`, with FLAN-T5-large's
recorded ratings. Judgments are hidden as `trecexam cross-validate` hides them; kappa is on hidden judgments (>= 2 or not), tau
is Kendall's, of nDCG@10 leaderboards with these gains and with all judgments. 95% intervals are over queries: those of `kappa` and `correlate`;
of ranks moved and of differences Student's t with the delete-d jackknife's standard error, as tau's without its bias. Means over three draws of judgments where these are random.

**Caution:** the encoder, all-MiniLM-L6-v2, was trained on MS MARCO, whose passages and kind of questions these are: on other collections its
features may be worth less, and `cross-validate` there says so. `c = 0.1` of the regressions is not chosen by the data (see the ablation); the kernel is, by likelihood, and cuts are fitted, anew in each fit.

**What hurts**, by the table of parts: nothing by much. Without the cosine with the query, the items, late interaction or the centroid, tau of queries left out is higher by
.01 to .02 and most else is the same, with 21 queries within chance; standardised features cost .01 of kappa and gain .02 of tau where queries are left out. Ratings of the grader matter most
where a query has no judgments (tau .86 against .82), the Gaussian process where it has some (kappa .59 against .44).
"""


def main(root: Path, wordllama: Path | None) -> None:
    with TrackLoader(TrackFolder.open(root)) as loader, tempfile.TemporaryDirectory() as folder:
        track = loader.load()
        queries = gather_data(track).queries
        runs = tuple(track.runs)
        teams = teams_file(runs, Path(folder))
        rows = cross_validate(track, known=SHARES, top=TOP, teams=teams).rows
        print("compared", flush=True)
        carried = carried_over(root, Path(folder))
        print("carried over", flush=True)
        encoded = {of.name: gather_data(track, encoder=of).queries for of in encoders(track, wordllama)}
        print("encoded", flush=True)
    places: dict[str, list[int]] = {}
    for at, line in enumerate(runs):
        places.setdefault(team_of(line), []).append(at)
    with threadpool_limits(1):
        held_out = nested(queries, choices(), 2, DRAWS)
        print("nested", flush=True)
        plain = CrossValidation(choices()["without ratings"].of(queries), 2)
        without = learned_row(plain, queries_left_out([q.judgments for q in queries]))
        table = goals(queries, rows, places, held_out, carried, without)
        print("goals", flush=True)
        lines = [
            INTRODUCTION,
            f"Made on {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, with other work beside it.\n",
            "## Goals\n",
            *table,
            *against_other_ways(rows),
            *ablation(queries, encoded),
            *seconds(queries),
        ]
    RESULTS.write_text("\n".join(lines))


def encoders(track: Assessment, wordllama: Path | None) -> Iterator[TokenMeans | Reduced]:
    """What all-MiniLM-L6-v2 is compared with; no other sentence encoder is to be had without a network."""
    texts = [track.texts[doc] for doc in sorted(track.texts)]
    mini = track_encoder(track)
    kept = TrackVectors(track.folder.shared_state, mini)
    kept.encode({}, texts)
    vectors = kept.of(texts)
    yield Reduced(mini, vectors, 64)
    yield word_embeddings(mini)
    yield latent_semantic(texts, 256)
    if wordllama is not None:
        yield word_llama(wordllama)


def choices() -> dict[str, Choice]:
    """What the ablation compares, and what the nested check chooses among."""
    every = tuple(range(16))
    return {
        "all": Choice(every),
        "no Gaussian process": Choice(every, ()),
        "kernel .1 + exp((cos - 1)/.3), noise .3, not chosen": Choice(every, (Kernel(),)),
        **{f"c = {c:g}": Choice(every, KERNELS, c) for c in (0.01, 0.03, 0.3, 1.0)},
        **{
            f"without {name}": Choice(tuple(c for c in every if c % 8 not in out))
            for name, out in GROUPS.items()
        },
        "without standardised features": Choice(every[:8]),
    }


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
    file.write_text("".join(f"{run}\t{team_of(run)}\n" for run in runs))
    return file


def team_of(run: str) -> str:
    return re.split("[^A-Za-z]", run)[0].removesuffix("base").removesuffix("tuned")


def ablation(
    queries: tuple[PooledQueryToLearn, ...], encoded: dict[str, tuple[PooledQueryToLearn, ...]]
) -> list[str]:
    judgments, ranks = [q.judgments for q in queries], [q.ranks for q in queries]
    splits = [
        *(random_share(judgments, share, 3, 0) for share in (0.02, 0.1, 0.2)),
        *(most_retrieved(judgments, ranks, k) for k in (3, 5, 10)),
        queries_left_out(judgments),
    ]
    embedding = tuple(c for c in range(16) if c % 8 < 6)
    variants = {
        **choices(),
        "without ratings, no Gaussian process": Choice(embedding, ()),
        "ratings alone": Choice((6, 7, 14, 15)),
        "ratings alone, no Gaussian process": Choice((6, 7, 14, 15), ()),
    }
    header = [
        "| | kappa, 2% known | 10% | 20% | tau, 3 a query | 5 | 10 | tau, queries left out |",
        "|---|" + "---|" * 7,
    ]
    lines = ["## What each part is worth\n", *header]
    lines += [ablated(name, choice, queries, splits) for name, choice in variants.items()]
    lines += ["", "## Encoders\n", ENCODERS, *header]
    for name, of_encoder in {"all-MiniLM-L6-v2": queries, **encoded}.items():
        lines.append(ablated(name, Choice(tuple(range(16))), of_encoder, splits))
        lines.append(ablated(f"{name}, without ratings", Choice(embedding), of_encoder, splits))
    return [*lines, ""]


def ablated(
    name: str, choice: Choice, queries: tuple[PooledQueryToLearn, ...], splits: Sequence[Split]
) -> str:
    validation = CrossValidation(choice.of(queries), 2, resamples=0, kernels=choice.kernels, c=choice.c)
    learned = [learned_row(validation, split) for split in splits]
    figures = [
        *(f"{row.kappa.value:.3f}" for row in learned[:3]),
        *(f"{row.tau.value:.3f}" for row in learned[3:]),
    ]
    return f"| {name} | {' | '.join(figures)} |"


def learned_row(validation: CrossValidation, split: Split) -> Row:
    return next(row for row in validation.rows(split) if row.method == LEARNED)


def seconds(queries: tuple[PooledQueryToLearn, ...]) -> list[str]:
    n = sum(len(q.doc_ids) for q in queries)
    more = [
        *queries,
        *queries[
            : 1 + next(at for at in range(21) if n + sum(len(q.doc_ids) for q in queries[: at + 1]) >= 5000)
        ],
    ]
    lines = [
        "## Time\n",
        "After encoding; CPU seconds of one core, the best of five. Of 5,000 passages some queries are there twice.\n",
        "| judgments known | fit | prediction | together |",
        "|---|---|---|---|",
    ]
    for some in (list(queries), more):
        for share in (0.1, 0.5, 1.0):
            rng = np.random.default_rng(0)
            seen = [q.hiding(rng.random(len(q.doc_ids)) >= share).passages for q in some]
            times = []
            for _ in range(5):
                start = time.process_time()
                learned = fit(seen)
                fitted = time.process_time()
                for passages in seen:
                    predict(learned, passages)
                times.append((fitted - start, time.process_time() - fitted))
            best = min(times, key=sum)
            lines.append(
                f"| {share:.0%} of {sum(len(q.doc_ids) for q in some):,} | {best[0]:.2f} s | {best[1]:.2f} s | {sum(best):.2f} s |"
            )
    return [*lines, ""]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
