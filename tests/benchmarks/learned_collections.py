"""Collections with complete judgments, with hidden and compared parts for the benchmark of learning."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from outside import outside
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict

from trecexam.extensions.learn.arithmetic.cuts import fit_cuts, labels_of
from trecexam.extensions.learn.arithmetic.drawn_measures import drawn_ap
from trecexam.extensions.learn.arithmetic.features import RRF
from trecexam.extensions.learn.arithmetic.ndcg import ndcg
from trecexam.extensions.learn.arithmetic.passages import FEATURES, Bools, Floats, QueryPassages
from trecexam.extensions.learn.arithmetic.regression import expected, scale_of
from trecexam.extensions.learn.learned_pool import gather_data
from trecexam.line.loader import TrackLoader
from trecexam.scores.correlation import half_width
from trecexam.scores.rank_correlation.tau import tau_b_columns
from trecexam.scores.retrieved import retrieved_weights
from trecexam.scores.values import TIE_DECIMALS
from trecexam.track import TrackFolder

K, TEN, RESAMPLES = 10, 10, 500
#: What is judged.
TOP = ("3 most retrieved", "5 most retrieved", "10 most retrieved", "20 most retrieved")
RANDOM = ("5% at random", "10% at random", "20% at random", "50% at random")
Queries = Sequence[QueryPassages]


class Setting(NamedTuple):
    """A collection, how many ranks of each run are pooled, and whether all judged passages are, too."""

    collection: str
    depth: int = 20
    pool_judged: bool = False

    def __str__(self) -> str:
        name = {"cranfield": "Cranfield", "vaswani": "Vaswani", "cisi": "CISI", "dl19": "DL 2019"}
        return f"{name[self.collection]}, {'all judged' if self.pool_judged else f'depth {self.depth}'}"


#: DL 2019's runs have 20 ranks.
SHALLOW = tuple(Setting(name) for name in ("cranfield", "vaswani", "cisi", "dl19"))
SETTINGS = (*SHALLOW, *(of._replace(depth=50) for of in SHALLOW[:3]))
ALL_JUDGED = Setting("dl19", pool_judged=True)


@dataclass(frozen=True, eq=False)
class Collection:
    """The queries with all judgments, names and teams of the runs, and from which label on is relevant."""

    queries: tuple[QueryPassages, ...]
    runs: tuple[str, ...]
    teams: tuple[str, ...]
    relevant: int

    @property
    def truth(self) -> Floats:
        """nDCG@10 by all judgments, shape (runs, queries)."""
        return board(self.queries, [query.judgments for query in self.queries], official=True)


@lru_cache(maxsize=1)
def collection(work: Path, setting: Setting) -> Collection:
    """Reads a collection, through a track in the folder `work`, which keeps the vectors."""
    source = outside("dl19" if setting.collection == "dl19" else f"collections/{setting.collection}")
    root, relevant = work / setting.collection, 2 if setting.collection == "dl19" else 1
    if not (root / "trecexam.toml").exists():
        qrels = next(source.glob("qrels.txt*"))
        options = (
            f"--queries {source / 'queries.tsv'} --passages {source / 'passages.jsonl.gz'} --qrels {qrels}"
        )
        line = f"{sys.executable} -m trecexam init {root} {options} --runs {source / 'runs'}"
        subprocess.run(line.split(), check=True, capture_output=True)
    (root / "trecexam.toml").write_text(
        f"[track]\ndepth = {setting.depth}\npool_judged = {str(setting.pool_judged).lower()}\n"
        f'[grader]\nname = "embedding"\n[scores]\nmin_relevant = {relevant}\n'
    )
    with TrackLoader(TrackFolder.open(root)) as loader:
        track = loader.load(bank_needed=False)
        # As everywhere here all of the pool is judged: a few of DL 2019 are not, and have no text.
        queries = [only_judged(query) for query in gather_data(track).queries]
        runs = tuple(track.runs)
    file = source / "teams.tsv"
    if file.exists():
        team_of = dict(line.split("\t") for line in file.read_text().splitlines())
    else:
        # Names that begin alike.
        team_of = {run: re.split(r"[-_\d]|base|tuned", run)[0] for run in runs}
    return Collection(tuple(queries), runs, tuple(team_of[run] for run in runs), relevant)


def judged_alone(queries: Queries, design: str, draw: int) -> list[QueryPassages]:
    """The queries with the judgments of a design alone: "3 most retrieved", or "10% at random"."""
    rng = np.random.default_rng([draw, 5])
    return [knowing(query, _chosen(query, design, rng)) for query in queries]


def _chosen(query: QueryPassages, design: str, rng: np.random.Generator) -> Bools:
    n = len(query.doc_ids)
    amount, how = design.split(" ", 1)
    if how == "at random":
        return rng.random(n) < int(amount.rstrip("%")) / 100
    order = np.argsort(-retrieved_weights(query.ranks, n), kind="stable")
    return np.isin(np.arange(n), order[: int(amount)])


def knowing(query: QueryPassages, judged: Bools) -> QueryPassages:
    """The query with these judgments alone."""
    return replace(query.hiding(~judged), elsewhere=np.empty(0))


def board(queries: Queries, gains: Sequence[Floats], official: bool = False) -> Floats:
    """nDCG@10, shape (runs, queries); `official` counts judgments of what is not pooled, too."""
    return np.column_stack(
        [
            ndcg(query.ranks, of_query, K, query.elsewhere if official else None)
            for query, of_query in zip(queries, gains, strict=True)
        ]
    )


def true_scores(queries: Queries, relevant: int) -> Floats:
    """nDCG@10 and AP once all of the pool is judged, shape (2, runs, queries)."""
    ap = [drawn_ap(q.ranks, q.judgments[None], relevant, np.empty(0))[0] for q in queries]
    return np.stack([board(queries, [q.judgments for q in queries]), np.column_stack(ap)])


def ranks_of(scores: Floats) -> Floats:
    """Of each run, from 1; ties have their mean rank."""
    return np.asarray(rankdata(-np.round(scores, TIE_DECIMALS)))


def resampled(n_queries: int) -> Floats:
    """Weights of queries: all alike, then of samples with replacement; shape (queries, 1 + RESAMPLES)."""
    drawn = np.random.default_rng(1).multinomial(n_queries, np.full(n_queries, 1 / n_queries), RESAMPLES).T
    return np.hstack([np.ones((n_queries, 1)), drawn]) / n_queries


def taus(values: Floats, truth: Floats, weights: Floats, best: int | None = None) -> Floats:
    """tau of a leaderboard with the true one, over all queries and over samples; of the best runs, or all.

    Args:
        values, truth: shape (runs, queries).
    """
    first = np.argsort(-truth.mean(axis=1), kind="stable")[:best]
    both = [np.round(of[first] @ weights, TIE_DECIMALS) for of in (values, truth)]
    return np.nan_to_num(tau_b_columns(*both))


def tau(values: Floats, truth: Floats) -> float:
    """The same of means, shape (runs,)."""
    both = [np.round(of, TIE_DECIMALS)[:, None] for of in (values, truth)]
    return float(np.nan_to_num(tau_b_columns(*both))[0])


def ends(figures: Floats, n_queries: int) -> list[float]:
    """The figure over all queries, and its 95% interval: Student's t times the bootstrap's standard error.

    Not percentiles: tau is lower in samples, where queries come twice, so that they may not hold the figure.
    """
    half = float(half_width(figures[1:].std(), n_queries))
    return [float(figures[0]), float(figures[0]) - half, min(1.0, float(figures[0]) + half)]


def kappas(of: Collection, seen: Queries, labels: Sequence[Floats], weights: Floats) -> Floats:
    """Cohen's kappa of hidden judgments, relevant or not, over all queries and over samples."""
    counts = []
    for query, known, of_query in zip(of.queries, seen, labels, strict=True):
        hidden = ~known.judged
        pair = 2 * (query.judgments[hidden] >= of.relevant) + (of_query[hidden] >= of.relevant)
        counts.append(np.bincount(pair.astype(int), minlength=4))
    table = np.array(counts).T @ weights
    table = table / table.sum(axis=0)
    chance = (table[2] + table[3]) * (table[1] + table[3]) + (table[0] + table[1]) * (table[0] + table[2])
    return np.asarray((table[0] + table[3] - chance) / np.where(chance < 1, 1 - chance, 1))


def plain_regression(seen: Queries) -> tuple[list[Floats], list[Floats]]:
    """Expected labels, and labels, by BM25, reciprocal rank fusion and cosine alone."""
    columns = [FEATURES.index("lexical"), FEATURES.index("cosine")]
    tables = [np.column_stack([query.features[:, columns], _fusion_scores(query)]) for query in seen]
    every = np.vstack(tables)
    tables = [(table - every.mean(axis=0)) / (every.std(axis=0) + 1e-12) for table in tables]
    known = np.vstack([table[query.judged] for table, query in zip(tables, seen, strict=True)])
    judgments = np.concatenate([query.judgments[query.judged] for query in seen])
    groups = np.repeat(np.arange(len(seen)), [int(query.judged.sum()) for query in seen])
    scale, model = scale_of(seen), LogisticRegression(C=1.0, max_iter=1000)
    p: list[list[Floats]] = []
    held_out = []
    for step in scale[1:]:
        reached = judgments >= step
        try:
            folds = GroupKFold(5)
            held_out.append(
                cross_val_predict(model, known, reached, groups=groups, cv=folds, method="predict_proba")[
                    :, 1
                ]
            )
        except ValueError:
            # A fold has one label alone.
            held_out.append(model.fit(known, reached).predict_proba(known)[:, 1])
        model.fit(known, reached)
        p.append([model.predict_proba(table)[:, 1] for table in tables])
    cuts = fit_cuts(expected(np.minimum.accumulate(np.array(held_out)), scale), judgments, scale)
    gains = [expected(np.minimum.accumulate(np.array(of_query)), scale) for of_query in zip(*p, strict=True)]
    return (
        [np.where(query.judged, query.judgments, gain) for query, gain in zip(seen, gains, strict=True)],
        [
            np.where(query.judged, query.judgments, labels_of(gain, cuts, scale))
            for query, gain in zip(seen, gains, strict=True)
        ],
    )


def _fusion_scores(query: QueryPassages) -> Floats:
    there = query.ranks >= 0
    adds = np.broadcast_to(1 / (RRF + 1 + np.arange(query.ranks.shape[1])), query.ranks.shape)[there]
    return np.bincount(query.ranks[there], adds, minlength=len(query.doc_ids))


def only_judged(query: QueryPassages) -> QueryPassages:
    """The query with its judged passages alone: rankings are without the others, and those below move up."""
    kept = query.judged
    place = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1).astype(np.int32)[query.ranks]
    return replace(
        query,
        doc_ids=tuple(doc for doc, there in zip(query.doc_ids, kept.tolist(), strict=True) if there),
        ranks=np.take_along_axis(place, np.argsort(place < 0, axis=1, kind="stable"), axis=1),
        judgments=query.judgments[kept],
        features=query.features[kept],
        vectors=query.vectors[kept],
    )
