# ruff: noqa: E501
"""Accuracy of the `embedding` grader on other collections, and its bias towards runs of its encoder.

    python tests/benchmarks/embedding_elsewhere.py ../shared WORK

Reads `collections/` and `dl19/` in the first folder; tracks are made in WORK, or reused if they are there:
encoding takes about ten minutes on two idle cores. Prints the tables of results/embedding-elsewhere.md.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy as np
from scipy.stats import rankdata

import trecexam
from trecexam.folder import TrackFolder
from trecexam.graders.embedding import EmbeddingGrader
from trecexam.grades.diagnostics import encoder_agreements, highest_cosines
from trecexam.grades.evaluation import official_values
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.open_track import OpenTrack
from trecexam.scores.encoder_likeness import agreement, runs_like_encoder
from trecexam.scores.rank_correlation.tau import tau_b_columns

COLLECTIONS = ("cranfield", "vaswani", "cisi")
DL19 = "dl19"
DEPTH, DRAWS = 20, 500
#: Runs drawn for a table of false alarms.
SIZES = (10, 20, 30)
TEAM = "minilm"
BM25 = "bm25base_p"
#: The head of each table.
HEADS = {
    "tau": ("collection", "measure", "tau", "95% interval", "tau of the best ten", "kappa"),
    "shift": ("collection", "measure", "`minilm`", "`rrf_minilm_bm25`", "`bm25_rerank_minilm`", "mean of the three",
              "next team", "mean of the 34 others", "most of the others"),
    "caution": ("collection", "median run", "deviation", "highest other run", "runs of the encoder", "named"),
    "drawn": ("collection", "runs", "false alarms", "found"),
}  # fmt: skip


def main(shared: Path, work: Path) -> None:
    work.mkdir(exist_ok=True)
    parts: dict[str, list[str]] = {name: [] for name in HEADS}
    for name in (*COLLECTIONS, DL19):
        root = work / name
        if not root.exists():
            lay_out(shared / DL19 if name == DL19 else shared / "collections" / name, root, name)
        with trecexam.open_track(root) as track:
            track.update()
            parts["tau"] += agreement_rows(track, name)
            if name != DL19:
                parts["shift"] += shift_rows(track, name, teams(shared / "collections" / name))
        with OpenTrack(TrackFolder.open(root)) as loaders:
            loader = loaders.first
            loaded = loader.load()
            own = cosine_runs(loaded) if name == DL19 else {}
            of_team = (
                []
                if name == DL19
                else [run for run, team in teams(shared / "collections" / name).items() if team == TEAM]
            )
            parts["caution"] += caution_rows(loaded, name, of_team, own)
            parts["drawn"] += drawn_rows(loaded, name, of_team, own)
    for name, head in HEADS.items():
        print(f"\n| {' | '.join(head)} |\n{'|---' * len(head)}|\n{''.join(parts[name])}", end="")


def lay_out(source: Path, root: Path, name: str) -> None:
    """A track of these files; without a test bank a query is its own question."""
    root.mkdir()
    for file in ("passages.jsonl.gz", "queries.tsv"):
        shutil.copy(source / file, root)
    qrels = source / "qrels.txt"
    content = (
        qrels.read_bytes() if qrels.exists() else gzip.decompress((source / "qrels.txt.gz").read_bytes())
    )
    (root / "qrels.txt").write_bytes(content)
    shutil.copytree(source / "runs", root / "runs")
    bank = source / "bank.questions.jsonl.gz"
    if bank.exists():
        shutil.copy(bank, root)
    else:
        rows = [line.rstrip("\n").split("\t", 1) for line in (source / "queries.tsv").open()]
        asked = (
            {
                "query_id": query_id,
                "query_text": text,
                "questions": [{"question_id": f"{query_id}/1", "question_text": text}],
            }
            for query_id, text in rows
        )
        (root / "bank.questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    (root / "trecexam.toml").write_text(
        f'[track]\ndepth = {DEPTH}\n[grader]\nname = "embedding"\n'
        f"[scores]\nmin_relevant = {relevant_from(name)}\n[report]\nwrite = false\n"
    )


def relevant_from(name: str) -> int:
    return 2 if name == DL19 else 1


def teams(folder: Path) -> dict[str, str]:
    return dict(line.split() for line in (folder / "teams.tsv").read_text().splitlines())


def both_sides(
    track: trecexam.Track, name: str
) -> Iterator[tuple[str, str, str, dict[str, float], dict[str, float]]]:
    """(the measure in words, the grader's and people's measure, their means by run)."""
    for words, ours, theirs in (
        ("nDCG@10", "nDCG@10", "nDCG@10"),
        ("P@20", f"P(rel=4)@{DEPTH}", f"P(rel={relevant_from(name)})@{DEPTH}"),
    ):
        boards = track.leaderboard([ours]), track.leaderboard([theirs], official=True)
        means = [{row.run: row.scores[0].mean for row in board.rows} for board in boards]
        yield words, ours, theirs, *means


def agreement_rows(track: trecexam.Track, name: str) -> Iterator[str]:
    kappa = kappa_of(track, relevant_from(name))
    for words, ours, theirs, rubric, official in both_sides(track, name):
        ((_, value),) = track.correlate([ours], [theirs]).pairs
        best = sorted(official, key=lambda run: (-official[run], run))[:10]
        sides = [np.round([[side[run]] for run in best], 12) for side in (rubric, official)]
        tau = value.kendall_tau
        yield (
            f"| {name} | {words} | {tau.value:.2f} | {tau.low:.2f} to {tau.high:.2f} | "
            f"{float(tau_b_columns(*sides)[0]):.2f} | {kappa:.2f} |\n"
        )


def kappa_of(track: trecexam.Track, relevant: int) -> float:
    """Cohen's kappa of pooled passages that people judged."""
    judged = {(row.query_id, row.doc_id): row.relevance >= relevant for row in track.export.official_qrels()}
    pairs = [
        (row.relevance >= 4, judged[row.query_id, row.doc_id])
        for row in track.qrels()
        if (row.query_id, row.doc_id) in judged
    ]
    ours, theirs = np.array(pairs).T
    chance = ours.mean() * theirs.mean() + (1 - ours.mean()) * (1 - theirs.mean())
    return float(((ours == theirs).mean() - chance) / (1 - chance))


def shift_rows(track: trecexam.Track, name: str, team_of: dict[str, str]) -> Iterator[str]:
    for words, _, _, rubric, official in both_sides(track, name):
        runs = sorted(rubric)
        ranks = [rankdata([-round(side[run], 12) for run in runs]) for side in (rubric, official)]
        higher = dict(zip(runs, (ranks[1] - ranks[0]).tolist(), strict=True))
        of_teams: dict[str, list[float]] = {}
        for run in runs:
            of_teams.setdefault(team_of[run], []).append(higher[run])
        others = [run for run in runs if team_of[run] != TEAM]
        next_team = max((team for team in of_teams if team != TEAM), key=lambda team: np.mean(of_teams[team]))
        most = max(others, key=lambda run: higher[run])
        yield (
            f"| {name} | {words} | {higher['minilm']:+.1f} | {higher['rrf_minilm_bm25']:+.1f} | {higher['bm25_rerank_minilm']:+.1f} | "
            f"{np.mean(of_teams[TEAM]):+.1f} | {next_team} {np.mean(of_teams[next_team]):+.1f} | {np.mean([higher[run] for run in others]):+.1f} | "
            f"{most} {higher[most]:+.1f} |\n"
        )


def cosine_runs(track: GradedTrack) -> dict[str, np.ndarray]:
    """Runs that the encoder makes of the pool: their agreement with the grader's order on each query."""
    assert isinstance(track.grader, EmbeddingGrader)
    means = official_values(track, ["nDCG@10"]).matrix("nDCG@10").mean(axis=1)
    bases = {"best": int(np.argmax(means)), "bm25": list(track.runs).index(BM25)}
    made: dict[str, list[float]] = {}
    for query_id, sheet in track.sheets.items():
        text = track.query_texts[query_id]
        vectors = track.grader._vectors([text, *(each or "" for each in sheet.texts)])
        cosines = np.array([vectors[each or ""] @ vectors[text] for each in sheet.texts])
        by_cosine = np.argsort(-cosines, kind="stable")
        place_by_cosine = np.argsort(by_cosine, kind="stable")
        orders = {"cosine": by_cosine}
        for name, row in bases.items():
            first = track.pool[query_id].ranks[row]
            first = first[first >= 0]
            # What the run does not have comes after what it has.
            place = np.full(len(cosines), 100)
            place[first] = np.arange(len(first))
            orders[f"rerank_{name}"] = first[np.argsort(-cosines[first], kind="stable")]
            orders[f"rrf_{name}"] = np.argsort(-1 / (60 + place) - 1 / (60 + place_by_cosine), kind="stable")
        highest = highest_cosines(track, sheet)
        for name, order in orders.items():
            made.setdefault(name, []).append(float(agreement(highest[order[:DEPTH]][None])[0]))
    return {name: np.array(values) for name, values in made.items()}


def with_encoders(
    track: GradedTrack, of_team: Sequence[str], own: dict[str, np.ndarray]
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The other runs' names, their agreements, those of the encoder's runs."""
    names, values = list(track.runs), encoder_agreements(track)
    others = [row for row, name in enumerate(names) if name not in of_team]
    ours = np.array(list(own.values())) if own else values[[names.index(run) for run in of_team]]
    return [names[row] for row in others], values[others], ours


def caution_rows(
    track: GradedTrack, name: str, of_team: Sequence[str], own: dict[str, np.ndarray]
) -> Iterator[str]:
    names, others, ours = with_encoders(track, of_team, own)
    called = list(own) or list(of_team)
    every = np.vstack([others, ours])
    means = np.nanmean(every, axis=1)
    deviation = 1.4826 * np.median(np.abs(means - np.median(means)))
    highest = int(np.argmax(means[: len(names)]))
    listed = [(names + called)[row] for row in runs_like_encoder(every)]
    yield (
        f"| {name} | {np.median(means):.2f} | {deviation:.3f} | {names[highest]} {means[highest]:.2f} | "
        + ", ".join(f"{run} {value:.2f}" for run, value in zip(called, means[len(names) :], strict=True))
        + f" | {', '.join(listed) or 'none'} |\n"
    )


def drawn_rows(
    track: GradedTrack, name: str, of_team: Sequence[str], own: dict[str, np.ndarray]
) -> Iterator[str]:
    names, others, ours = with_encoders(track, of_team, own)
    called = list(own) or list(of_team)
    for size in (*SIZES, len(names)):
        rng = np.random.default_rng(size)
        false, found = 0, dict.fromkeys(called, 0)
        draws = DRAWS if size < len(names) else 1
        for _ in range(draws):
            drawn = others[rng.choice(len(names), size, replace=False)]
            false += bool(runs_like_encoder(drawn))
            for run, values in zip(called, ours, strict=True):
                found[run] += size - 1 in runs_like_encoder(np.vstack([drawn[1:], values]))
        yield f"| {name} | {size} | {false / draws:.1%} | {', '.join(f'{run} {n / draws:.0%}' for run, n in found.items())} |\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
