"""Disk size of a track of TREC RAG's size, and speed of storing its grades. No model runs.

python tests/benchmarks/track_size.py [--topics 300] [--runs 100] [--items 15] [--out FILE.md]

Makes a track in a temporary folder: every run ranks 20 of a topic's candidates, the popular ones more often
than the others, so that runs overlap as they do in an evaluation campaign (how much is printed). A fast
fake grader fills the real store, once with the data of a language model (an answer and the probabilities of
six ratings) and, on a tenth of the topics, once without. Every step runs in a separate process, whose peak
memory is measured.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import platform
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import trecexam  # noqa: E402
from trecexam.graders import Answer, Cell  # noqa: E402

DEPTH, CANDIDATES, SKEW = 20, 480, 0.9
#: Cells of a transaction: what a worker with a GPU gives at a time.
BATCH = 4096
WORDS = [
    f"{a}{b}" for a in ("ra", "lo", "mi", "ten", "so", "gru") for b in ("ker", "lin", "dos", "pa", "tum")
]


class InstantGrader:
    """Answers by a hash; `plain` leaves out what a language model says beside the rating."""

    def __init__(self, plain: bool) -> None:
        self.plain = plain

    @property
    def identity(self) -> dict[str, Any]:
        return {"grader": "instant", "plain": self.plain}

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        rest = iter(cells)
        while batch := list(itertools.islice(rest, BATCH)):
            yield [(cell, self._answer(cell)) for cell in batch]

    def _answer(self, cell: Cell) -> Answer:
        digest = hashlib.md5(f"{cell.text}\0{cell.item.text}".encode()).digest()
        rating = digest[0] % 6
        if self.plain:
            return Answer(rating, "ok", "")
        total = sum(digest[1:7]) or 1
        return Answer(rating, "ok", str(rating), tuple(round(part / total, 6) for part in digest[1:7]))


def make(root: Path, topics: int, runs: int, items: int) -> int:
    """A track without grades; returns its pooled passages."""
    rng = random.Random(7)
    (root / "runs").mkdir(parents=True)
    (root / "trecexam.toml").write_text(f"[track]\ndepth = {DEPTH}\n")
    weights = list(itertools.accumulate(1 / (place + 1) ** SKEW for place in range(CANDIDATES)))
    lines: list[list[str]] = [[] for _ in range(runs)]
    pooled = 0
    with (
        (root / "passages.jsonl").open("w") as passages,
        (root / "bank.questions.jsonl").open("w") as bank,
        (root / "queries.tsv").open("w") as queries,
    ):
        for topic in range(topics):
            query = f"t{topic:03}"
            queries.write(f"{query}\ttopic {topic}\n")
            questions = [
                {"question_id": f"{query}/{n}", "question_text": f"{' '.join(rng.choices(WORDS, k=12))}?"}
                for n in range(items)
            ]
            bank.write(
                json.dumps({"query_id": query, "query_text": f"topic {topic}", "questions": questions})
            )
            bank.write("\n")
            seen: set[int] = set()
            for run in range(runs):
                chosen: dict[int, None] = {}
                while len(chosen) < DEPTH:
                    chosen.update(dict.fromkeys(rng.choices(range(CANDIDATES), cum_weights=weights, k=DEPTH)))
                for rank, place in enumerate(list(chosen)[:DEPTH], 1):
                    lines[run].append(f"{query} Q0 {query}#{place} {rank} {100 - rank} run{run:03}\n")
                    seen.add(place)
            for place in sorted(seen):
                text = f"{query} {place} " + " ".join(rng.choices(WORDS, k=180))
                passages.write(json.dumps({"docid": f"{query}#{place}", "text": text}) + "\n")
            pooled += len(seen)
    for run, written in enumerate(lines):
        (root / "runs" / f"run{run:03}.run").write_text("".join(written))
    return pooled


def update(root: Path, plain: bool) -> dict[str, Any]:
    """One update, as `trecexam watch --once` does it; in this process."""
    began = time.perf_counter()
    first: list[float] = []
    last = began

    def progress(_: object) -> None:
        nonlocal last
        last = time.perf_counter()
        first.append(last)

    with trecexam.open_track(root, grader=InstantGrader(plain)) as track:
        found = track.update(progress=progress)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    grading = (last - first[0], found.graded - BATCH) if len(first) > 1 else (0.0, 0)
    return {
        "seconds": time.perf_counter() - began,
        "graded": found.graded,
        "rate": grading[1] / grading[0] if grading[0] else 0.0,
        "peak_mib": peak,
    }


def apart(root: Path, *, plain: bool = False) -> dict[str, Any]:
    """`update` in a process of its own."""
    command = [sys.executable, __file__, "--update", str(root), *(["--plain"] if plain else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def store(root: Path) -> tuple[int, int]:
    """(grades, bytes) of the store, its log written back."""
    path = root / ".trecexam" / "grades.sqlite"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        count = int(db.execute("SELECT count(*) FROM grade").fetchone()[0])
    db.close()
    return count, path.stat().st_size


def measure(topics: int, runs: int, items: int, folder: Path) -> str:
    """The figures as Markdown."""
    part = max(1, topics // 10)
    root = folder / "plain"
    make(root, part, runs, items)
    apart(root, plain=True)
    plain_grades, plain_bytes = store(root)
    root = folder / "track"
    pooled = make(root, topics, runs, items)
    whole = apart(root)
    grades, size = store(root)
    assert grades == whole["graded"]
    again = apart(root)
    assert again["graded"] == 0
    (root / "runs" / "late.run").write_text(
        "".join(f"t{topic:03} Q0 t{topic:03}#0 1 1 late\n" for topic in range(topics))
    )
    late = apart(root)
    slots = runs * DEPTH
    unique = pooled / topics
    rows = [
        ("topics x runs x depth x items", f"{topics} x {runs} x {DEPTH} x {items}"),
        (
            "different passages of a topic",
            f"{unique:.0f} of {slots:,} ranks (x {slots / unique:.1f} overlap)",
        ),
        ("cells", f"{grades:,}"),
        ("store, answer and six probabilities", f"{size / 1e6:,.0f} MB, {size / grades:.0f} bytes a grade"),
        ("store, rating alone", f"{plain_bytes / plain_grades:.0f} bytes a grade"),
        ("cells stored a second", f"{whole['rate']:,.0f}"),
        ("first update, grading and outputs", f"{whole['seconds']:.0f} s, {whole['peak_mib']:,.0f} MiB"),
        ("update with nothing new", f"{again['seconds']:.1f} s, {again['peak_mib']:,.0f} MiB"),
        ("update with one run more, no new cell", f"{late['seconds']:.0f} s, {late['peak_mib']:,.0f} MiB"),
    ]
    return "| what | measured |\n|---|---|\n" + "".join(f"| {what} | {found} |\n" for what, found in rows)


def machine() -> str:
    found = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]  # fmt: skip
    return f"{len(found)} cores of {found[0] if found else platform.processor()}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--topics", type=int, default=300)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--items", type=int, default=15)
    parser.add_argument("--out", type=Path, help="Markdown file to write.")
    parser.add_argument("--update", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--plain", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.update:
        print(json.dumps(update(given.update, given.plain)))
        sys.exit()
    options = f"--topics {given.topics} --runs {given.runs} --items {given.items}"
    report = f"# A track of TREC RAG's size\n\n{machine()}, a virtual machine. Made by\n"
    report += f"`python tests/benchmarks/track_size.py {options}`.\n\n"
    with tempfile.TemporaryDirectory() as temporary:
        report += measure(given.topics, given.runs, given.items, Path(temporary))
    if given.out:
        given.out.write_text(report)
    print(report)
