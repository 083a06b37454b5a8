"""A large track with a plausible shape, made in half a minute without a model: for load tests and figures.

    python tests/helpers/big_track.py FOLDER [--queries 300] [--runs 100] [--docs 334] [--items 10]

Runs differ in skill, passages in relevance, items in difficulty; official judgments cover two passages in
three. The settings name a server that is not asked: its grades come from here.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import trecexam
from trecexam.graders import Answer, Cell, create
from trecexam.line.loader import opened
from trecexam.track import TrackFolder

DEPTH = 20
BATCH = 4096
WORDS = (
    "the of in and river city war king species protein market theory church music north record early "
    "system energy water law school species light treaty engine novel coast island trade cell metal "
    "method result large small first second major known found called made used between after during"
)
LEXICON = tuple(WORDS.split(" "))

CONFIG = f"""\
[track]
depth = {DEPTH}

[grader]
name = "openai"
model = "simulated"
base_url = "http://127.0.0.1:9/v1"

[scores]
measures = ["Cover(rel=4)@20", "nDCG@10", "P(rel=4)@20"]
official_measures = ["nDCG@10", "P(rel=2)@20"]
"""


class SimulatedGrader:
    """Replaces the grader of the settings: the same identity, with answers from made-up relevance."""

    free_text = True

    def __init__(self, identity: dict[str, Any], relevance: dict[str, float]) -> None:
        self.identity = identity
        self._relevance = relevance
        self._random = random.Random(11)

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        rest = iter(cells)
        while batch := list(islice(rest, BATCH)):
            yield [(cell, self._answer(cell)) for cell in batch]

    def _answer(self, cell: Cell) -> Answer:
        if self._random.random() < 0.005:
            return Answer(None, "unparsed", "I am not sure what is asked.")
        difficulty = (sum(cell.item.text.encode()) % 100) / 50 - 1
        rating = round(1.5 + 1.6 * (self._relevance[cell.doc_id] - difficulty) + self._random.gauss(0, 0.8))
        rating = min(5, max(0, rating))
        return Answer(rating, "ok", str(rating))


def make_big_track(
    root: Path, *, queries: int = 300, runs: int = 100, docs: int = 380, items: int = 10
) -> Path:
    """A graded track of `queries` x about `docs` pooled passages x `items`; its outputs are not written.

    Runs are drawn from `docs`; with 100 runs of depth 20 nearly all of them are pooled.
    """
    chance = random.Random(7)
    numbers = np.random.default_rng(7)
    (root / "runs").mkdir(parents=True)
    (root / "trecexam.toml").write_text(CONFIG)
    skills = numbers.normal(0.8, 0.5, runs)
    relevance: dict[str, float] = {}
    lines: list[list[str]] = [[] for _ in range(runs)]
    with (
        (root / "passages.jsonl").open("w") as passages,
        (root / "bank.questions.jsonl").open("w") as bank,
        (root / "queries.tsv").open("w") as titles,
        (root / "qrels.txt").open("w") as qrels,
    ):
        for number in range(queries):
            query = f"{1000 + number}"
            title = " ".join(chance.choices(LEXICON, k=5))
            titles.write(f"{query}\t{title}\n")
            asked = [
                {
                    "question_id": f"{query}/{n}",
                    "question_text": f"what {' '.join(chance.choices(LEXICON, k=9))}?",
                }
                for n in range(items)
            ]
            bank.write(json.dumps({"query_id": query, "query_text": title, "questions": asked}) + "\n")
            truth = numbers.normal(-0.4, 1.0, docs)
            for place in range(docs):
                doc_id = f"d{query}-{place:03}"
                relevance[doc_id] = float(truth[place])
                text = f"{doc_id} " + " ".join(chance.choices(LEXICON, k=60))
                passages.write(json.dumps({"docid": doc_id, "text": text}) + "\n")
                if place % 3:
                    judged = min(3, max(0, round(truth[place] + chance.gauss(0.3, 0.6))))
                    qrels.write(f"{query} 0 {doc_id} {judged}\n")
            for run in range(runs):
                seen = truth * skills[run] + numbers.normal(0, 1.0, docs)
                for rank, place in enumerate(np.argsort(-seen)[:DEPTH], 1):
                    lines[run].append(f"{query} Q0 d{query}-{place:03} {rank} {100 - rank} run{run:03}\n")
    for run, written in enumerate(lines):
        (root / "runs" / f"run{run:03}.run").write_text("".join(written))
    _grade(root, relevance)
    return root


def _grade(root: Path, relevance: dict[str, float]) -> None:
    folder = TrackFolder.open(root)
    real = create(folder.config.grader, root)
    with opened(root, SimulatedGrader(dict(real.identity), relevance)) as loader:
        # The outputs are not written here.
        loader.open_to_write()
        loader.grade(loader.load())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    for name, default in (("queries", 300), ("runs", 100), ("docs", 380), ("items", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    wanted = vars(parser.parse_args())
    began = time.perf_counter()
    made = make_big_track(wanted.pop("folder"), **wanted)
    with trecexam.open_track(made) as track:
        print(
            f"{track.grading.counts().cells:,} cells in {time.perf_counter() - began:.0f} s", file=sys.stderr
        )
