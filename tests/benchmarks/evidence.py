"""Measure the table of examples/evidence.md: graders against human judgments.

    python tests/benchmarks/evidence.py [COLLECTION...] --data FOLDER [--rows FILE]

The folder of --data has dl19/ and collections/NAME/, each with queries.tsv, passages.jsonl.gz, qrels.txt or
qrels.txt.gz, runs/, and perhaps teams.tsv, bank.*.jsonl.gz and graded.NAME.jsonl.gz. Without a bank, each
query is its one question. Without teams.tsv, runs whose names begin alike (letters) are a team.
Each row is appended to --rows as JSON once measured; tracks lie beside it. On an AMD EPYC DL 2019
takes about 4 minutes of CPU time, CISI 7; the two others were not timed as a whole.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import cohen_kappa_score

import converters
import trecexam
from trecexam.scores.correlation import Correlation, correlate

MEASURE, DEPTH, N_JUDGED = "nDCG@10", 20, 10
#: min_answers and min_relevant of kappa; (1, 1) for other collections.
THRESHOLDS = {"dl19": (2, 2)}
COLUMNS = (
    *("collection", "grader", "queries", "runs", "tau", "low", "high", "tau_AP", "tau, best ten", "kappa"),
    *("shift, holes", "shift, filled", "CPU s", "paid"),
)
Row = dict[str, Any]


def main() -> None:
    """Measure the rows of each collection and print the table of all rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("collections", nargs="*", default=("dl19", "cranfield", "cisi", "vaswani"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=Path, default=Path("evidence/rows.jsonl"))
    options = parser.parse_args()
    for name in options.collections:
        source = options.data / ("" if name == "dl19" else "collections") / name
        for row in rows(source.resolve(), options.rows.resolve().parent / name):
            with options.rows.open("a") as file:
                print(json.dumps({"collection": name, **row}), file=file)
    print("", *COLUMNS, "\n" + "|---" * len(COLUMNS) + "|", sep="|")
    for row in map(json.loads, options.rows.read_text().splitlines()):
        values = [row.get(column, "") for column in COLUMNS]
        print("", *(f"{v:.2f}" if isinstance(v, float) else v for v in values), "", sep="|")


def rows(source: Path, work: Path) -> Iterator[Row]:
    """Yield the rows of a collection: recorded grades if there are any, the embedder, learned labels."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    teams, bank = source / "teams.tsv", min(source.glob("bank.*"), default=work / "bank.jsonl")
    if not bank.exists():
        queries = [line.split("\t", 1) for line in (source / "queries.tsv").read_text().splitlines()]
        bank.write_text("".join(json.dumps({"query_id": q, "question": text}) + "\n" for q, text in queries))
    if not teams.exists():
        runs = sorted(file.name.split(".run")[0] for file in source.glob("runs/*"))
        teams = work / "teams.tsv"
        teams.write_text("".join(f"{run}\t{re.split('[^A-Za-z]', run)[0]}\n" for run in runs))
    files = {"bank": bank, "qrels": min(source.glob("qrels.txt*"))}
    thresholds = THRESHOLDS.get(source.name, (1, 1))
    for recorded in source.glob("graded.*"):
        with make_track(source, work / "recorded", recorded=recorded, **files) as track:
            yield {"grader": f"{recorded.name.split('.')[1]}, recorded", **grade(track, teams, *thresholds)}
    with make_track(source, work / "embedding", **files) as track:
        yield {"grader": "embedding", **grade(track, teams, *thresholds)}
        judged = {(row.query_id, row.doc_id): row.relevance for row in track.export.official_qrels()}
        few = work / "few.qrels"
        few.write_text("".join(f"{q} 0 {d} {judged[q, d]}\n" for q, d in most_retrieved(source, judged)))
        with make_track(source, work / "learned", qrels=few) as learner:
            row = learn(learner, track, judged, thresholds[1])
        yield {"grader": f"learned, {N_JUDGED} judged", **row, **shifts(track, teams, "learned")}


def make_track(source: Path, root: Path, **files: Path) -> trecexam.Track:
    """Make a track by `trecexam init` and open it."""
    files |= {name.split(".")[0]: source / name for name in ("queries.tsv", "passages.jsonl.gz", "runs")}
    words = [word for option, file in files.items() for word in (f"--{option}", str(file))]
    subprocess.run([sys.executable, "-m", "trecexam", "init", str(root), *words], check=True)
    return trecexam.open_track(root)


def timed(call: Callable[[], Any]) -> tuple[Any, int]:
    """Return the result of a call and its CPU seconds, of all threads and ended children."""
    before = sum(os.times()[:4])
    return call(), math.ceil(sum(os.times()[:4]) - before)


def grade(track: trecexam.Track, teams: Path, min_answers: int, min_relevant: int) -> Row:
    """Grade a track, and compare its labels with all judgments."""
    _, seconds = timed(track.update)
    ((_, found),) = track.correlate([MEASURE], [MEASURE]).pairs
    kappa = track.agreement((), [min_answers], min_relevant).facts["kappa"]
    costs = {"CPU s": seconds, "paid": track.status().facts.get("cost") or 0}
    return {"queries": len(track.queries), **taus(found), "kappa": kappa, **shifts(track, teams), **costs}


def learn(learner: trecexam.Track, track: trecexam.Track, judged: dict[Any, int], min_relevant: int) -> Row:
    """Learn from few judgments, and compare with all; kappa is of passages with a learned label."""
    labels, seconds = timed(learner.learn.labels)
    board = {row.run: row.scores[0].mean for row in labels.board.rows}
    truth = track.leaderboard(MEASURE, official=True).rows
    found = correlate(np.array([[board[row.run]] for row in truth]), [row.scores[0].mean for row in truth])
    labelled = {(q, d): label for q, d, _, _, label, is_judged in labels.rows if is_judged == "no"}
    pairs = labelled.keys() & judged.keys()
    sides = [[side[pair] >= min_relevant for pair in pairs] for side in (labelled, judged)]
    costs = {"CPU s": seconds, "paid": 0}
    return {"queries": len(track.queries), **taus(found), "kappa": float(cohen_kappa_score(*sides)), **costs}


def taus(found: Correlation) -> Row:
    """Return the columns of a correlation."""
    values = (*found.kendall_tau, found.tau_ap.value, found.kendall_at_10.value)
    named = zip(("tau", "low", "high", "tau_AP", "tau, best ten"), values, strict=True)
    return {"runs": found.n_runs, **{column: value for column, value in named if not math.isnan(value)}}


def shifts(track: trecexam.Track, teams: Path, method: str = "fill") -> Row:
    """Return how far a run moves without the judgments of its team: with holes, then filled by a method."""
    simulated = track.simulate([MEASURE], teams=teams, by=() if method == "fill" else (method,))
    found = {row["judgments"]: row["mean_shift"] for row in simulated.tables["shifts"]}
    return {"shift, holes": found["holes"], "shift, filled": found[method]}


def most_retrieved(source: Path, judged: dict[Any, int]) -> Iterator[tuple[str, str]]:
    """Yield the `N_JUDGED` judged passages of each query that most runs have in their first ranks."""
    found = map(converters.read, source.glob("runs/*"))
    counts = Counter((q, doc_id) for run in found for q in run.query_ids for doc_id in run.ranking(q)[:DEPTH])
    order = sorted(counts.keys() & judged.keys(), key=lambda pair: (pair[0], -counts[pair], pair))
    for _, pairs in groupby(order, key=lambda pair: pair[0]):
        yield from islice(pairs, N_JUDGED)


if __name__ == "__main__":
    main()
