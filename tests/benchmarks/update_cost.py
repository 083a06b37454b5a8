"""Cost of an update: CPU seconds, memory, and time until the leaderboard. No model runs.

    python tests/benchmarks/update_cost.py [--only A1,A2] [--work FOLDER]

Prints a table in Markdown. Tracks are made once in the folder --work (by default a temporary one) and are
reused by later calls, also from other checkouts; each measurement works on a copy. Each measurement is a
separate process in the checkout of this file, and counts its CPU seconds (user and system, with children),
which other load changes least.

Measurements (--only): A1 (a first update; one run more in a fresh process, then another one in the same
process); A2 (trec_eval 10 on A); C4, as A1; C2, as A2; F4 (many runs at once, and one more). Queries x runs
x ranks: A 300 x 20 x 1,000, C 300 x 100 x 20 with 15 items, F 50 x 2,000 x 20.
"""

from __future__ import annotations

import argparse
import compileall
import ctypes
import json
import os
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]

from outside import outside as data_outside  # noqa: E402

PYTHON = [sys.executable]
HZ = os.sysconf("SC_CLK_TCK")
#: Seconds between two looks at out/leaderboard.tsv.
LOOK = 0.005
#: Changes whenever other tracks are made than before: those in --work are then made anew.
VERSION = 2

LEXICON = (
    "the of in and river city war king species protein market theory church music north record early "
    "system energy water law school light treaty engine novel coast island trade cell metal method result "
    "large small first second major known called made used between after during"
)
WORDS = LEXICON.split(" ")

#: The settings name a server that is not asked: its grades are made up and stored.
CONFIG = """\
[track]
depth = 20

[grader]
name = "openai"
model = "simulated"
base_url = "http://127.0.0.1:9/v1"
"""


# --- tracks ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """A made-up track. Runs rank `candidates` by a noisy view of their relevance, then unrelated passages."""

    title: str
    queries: int
    runs: int
    ranks: int
    candidates: int
    items: int
    depth: int = 20
    #: Runs that are added while it is measured; the first `depth` of them are pooled already.
    late: int = 2


SHAPES = {
    "A": Shape("six million", 300, 20, 1000, 400, 10),
    "C": Shape("rag", 300, 100, 20, 504, 15),
    "F": Shape("many runs", 50, 2000, 20, 420, 10),
}


def make(root: Path, shape: Shape) -> dict[str, int]:
    """Writes the track, its late runs and its grades; returns what there is of each."""
    import numpy as np

    rng, chance = np.random.default_rng(7), random.Random(7)
    (root / "track" / "runs").mkdir(parents=True)
    (root / "late").mkdir()
    (root / "track" / "trecexam.toml").write_text(CONFIG)
    n_runs, depth = shape.runs + shape.late, shape.depth
    skills = rng.normal(0.8, 0.5, n_runs)
    names = [f"run{number:03}" for number in range(shape.runs)]
    names += [f"late{number}" for number in range(shape.late)]
    tails = [
        [f"{rank} {30 - rank * 0.017:.4f} {name}\n" for rank in range(1, shape.ranks + 1)] for name in names
    ]
    lines: list[list[str]] = [[] for _ in names]
    files: dict[str, list[str]] = {"queries.tsv": [], "bank.questions.jsonl": [], "passages.jsonl": []}
    qrels: list[str] = []
    grades: list[tuple[list[str], list[str], Any]] = []
    n_pooled = 0
    for number in range(shape.queries):
        query, title = f"{1000 + number}", " ".join(chance.choices(WORDS, k=5))
        truth = rng.normal(-0.4, 1.0, shape.candidates)
        views = truth * skills[:, None] + rng.normal(0, 1.0, (n_runs, shape.candidates))
        order = np.argsort(-views, axis=1)
        is_pooled = np.zeros(shape.candidates, dtype=bool)
        is_pooled[order[: shape.runs, :depth]] = True
        for late in range(shape.runs, n_runs):
            # The pooled ones first, so that no cell is new.
            order[late] = order[late][np.argsort(~is_pooled[order[late]], kind="stable")]
        heads = [f"{query} Q0 msmarco_v2.1_{query}_{place:04} " for place in range(shape.candidates)]
        others = [f"{query} Q0 msmarco_v2.1_{10 * n}_{query} " for n in range(4 * shape.ranks)]
        for run, tail in enumerate(tails):
            ranked = [heads[place] for place in order[run].tolist()[: shape.ranks]]
            ranked += chance.sample(others, shape.ranks - len(ranked))
            lines[run] += [head + rest for head, rest in zip(ranked, tail, strict=True)]
        pooled = np.flatnonzero(is_pooled)
        doc_ids = [f"msmarco_v2.1_{query}_{place:04}" for place in pooled.tolist()]
        texts = [f"{doc_id} {' '.join(chance.choices(WORDS, k=60))}" for doc_id in doc_ids]
        questions = [f"what {' '.join(chance.choices(WORDS, k=9))} {n}?" for n in range(shape.items)]
        bank = [{"question_id": f"{query}/{n}", "question_text": text} for n, text in enumerate(questions)]
        files["queries.tsv"].append(f"{query}\t{title}\n")
        files["bank.questions.jsonl"].append(
            json.dumps({"query_id": query, "query_text": title, "questions": bank}) + "\n"
        )
        files["passages.jsonl"] += [
            json.dumps({"docid": doc_id, "text": text}) + "\n"
            for doc_id, text in zip(doc_ids, texts, strict=True)
        ]
        judged = np.clip(np.round(truth[pooled] + rng.normal(0.3, 0.6, len(pooled))), 0, 3).astype(int)
        qrels += [
            f"{query} 0 {doc_id} {label}\n"
            for place, doc_id, label in zip(pooled.tolist(), doc_ids, judged.tolist(), strict=True)
            if place % 3
        ]
        difficulty = rng.uniform(-1, 1, shape.items)
        ratings = 1.5 + 1.6 * (truth[pooled][:, None] - difficulty)
        ratings = np.clip(np.round(ratings + rng.normal(0, 0.8, ratings.shape)), 0, 5).astype(np.int8)
        ratings[rng.random(ratings.shape) < 0.005] = -1
        grades.append((questions, texts, ratings))
        n_pooled += len(pooled)
    files["qrels.txt"] = qrels
    for name, content in files.items():
        (root / "track" / name).write_text("".join(content))
    for name, content in zip(names, lines, strict=True):
        folder = root / "late" if name.startswith("late") else root / "track" / "runs"
        (folder / f"{name}.run").write_text("".join(content))
    return {"pooled": n_pooled, "grades": store_grades(root / "track", grades), "judgments": len(qrels)}


def store_grades(root: Path, grades: Sequence[tuple[list[str], list[str], Any]]) -> int:
    """Stores (questions, passages, ratings; -1: none) as the grades of the grader that the settings name."""
    from converters.records import Item
    from trecexam.bank.model import asked_digest, passage_digest
    from trecexam.folder import TrackFolder
    from trecexam.graders import create
    from trecexam.graders.base import identity_digest, identity_json
    from trecexam.grades.store import GradeRow, GradeStore

    folder = TrackFolder.open(root)
    identity = create(folder.config.grader, root).identity
    count = 0
    with GradeStore(folder.store_path) as store:
        grader = store.add_grader(identity_digest(identity), identity_json(identity))
        for questions, texts, ratings in grades:
            items = store.add_ids(
                "item", [asked_digest(Item("", "", text, "question", ())) for text in questions]
            )
            passages = store.add_ids("passage", [passage_digest(text) for text in texts])
            rows = [
                GradeRow(item, passage, rating, "ok", str(rating))
                if rating >= 0
                else GradeRow(item, passage, None, "unparsed", "I am not sure what is asked.")
                for item, column in zip(items, ratings.T.tolist(), strict=True)
                for passage, rating in zip(passages, column, strict=True)
            ]
            store.add(grader, rows)
            count += len(rows)
    return count


def made(work: Path, name: str) -> dict[str, int]:
    """Makes the track of this name where it is not there yet, in a process of its own, which is big."""
    root = work / "pristine" / name
    note = root / "made.json"
    key = {"version": VERSION, "config": CONFIG, **asdict(SHAPES[name])}
    if not note.exists() or json.loads(note.read_text())["key"] != key:
        shutil.rmtree(root, ignore_errors=True)
        progress(f"making track {name}")
        began = time.monotonic()
        words = [*PYTHON, __file__, "--make", name, "--work", str(work)]
        done = subprocess.run(
            words,
            check=True,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=environment(),
            preexec_fn=die_with_parent,
        )
        counts = json.loads(done.stdout)
        note.write_text(json.dumps({"key": key, "counts": counts}))
        progress(f"made track {name} in {time.monotonic() - began:.0f} s: {counts}")
    counts = json.loads(note.read_text())["counts"]
    return {str(what): int(count) for what, count in counts.items()}


def copied(work: Path, name: str) -> Path:
    """A copy of the track to work on. Its inputs are hard links; its store, which is written to, is not."""
    made(work, name)
    pristine, root = work / "pristine" / name / "track", work / "state" / name
    shutil.rmtree(root, ignore_errors=True)
    root.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(pristine, root, copy_function=os.link, ignore=shutil.ignore_patterns(".trecexam"))
    # It is a text file that people edit.
    (root / "trecexam.toml").unlink()
    shutil.copy2(pristine / "trecexam.toml", root)
    shutil.copytree(pristine / ".trecexam", root / ".trecexam")
    return root


def add_late(work: Path, name: str, root: Path, number: int) -> Path:
    """Drops a run whose first ranks are pooled already."""
    path = root / "runs" / f"late{number}.run"
    path.hardlink_to(work / "pristine" / name / "late" / path.name)
    return path


# --- processes -------------------------------------------------------------------------------------------


class Cost(NamedTuple):
    """What something took; `board_*` until out/leaderboard.tsv was another file, None where it stayed."""

    cpu: float
    wall: float
    peak_mib: float
    board_cpu: float | None = None
    board_wall: float | None = None


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def die_with_parent() -> None:
    """Called in a new child: it shall not outlive this process, however that ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def progress(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def cpu_of(pid: int) -> float:
    """CPU seconds of a process, of those that it waited for, and of its living children, so far."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = [
            child
            for path in Path(f"/proc/{pid}/task").glob("*/children")
            for child in path.read_text().split()
        ]
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / HZ + sum(cpu_of(int(child)) for child in children)


def stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino


def cpu_seconds(words: Sequence[str | Path], limit: float) -> float:
    """CPU seconds of a whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        list(map(str, words)),
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=limit,
        preexec_fn=die_with_parent,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Session:
    """A process that holds a track open and updates it each time it is told to."""

    def __init__(self, root: Path, limit: float) -> None:
        self._board = root / "out" / "leaderboard.tsv"
        self._limit = limit
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._is_fresh = True
        self._child = subprocess.Popen(
            [*PYTHON, __file__, "--session", str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=ROOT,
            env=environment(),
            preexec_fn=die_with_parent,
        )

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        self._child.kill()
        self._child.communicate()
        self._errors.close()

    def update(self) -> Cost:
        """One update. The first one's cost is that of the process from its start on."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        pid = self._child.pid
        before, began = stamp(self._board), time.monotonic()
        base = 0.0 if self._is_fresh else cpu_of(pid)
        self._is_fresh = False
        board: tuple[float, float] | None = None
        self._child.stdin.write("update\n")
        self._child.stdin.flush()
        ready = False
        while not ready:
            ready = bool(select.select([self._child.stdout], [], [], LOOK)[0])
            if board is None and stamp(self._board) != before:
                board = cpu_of(pid) - base, time.monotonic() - began
            if time.monotonic() > began + self._limit:
                raise TimeoutError(f"an update took more than {self._limit:.0f} s")
        cpu, wall = cpu_of(pid) - base, time.monotonic() - began
        answer = self._child.stdout.readline()
        if not answer:
            self._errors.seek(0)
            raise RuntimeError(self._errors.read().decode(errors="replace").strip()[-600:])
        reply = json.loads(answer)
        if not (reply["changed"] and reply["complete"]):
            raise RuntimeError(f"not a whole update: {reply}")
        return Cost(cpu, wall, reply["peak_mib"], *(board or (None, None)))


def session(root: Path) -> None:
    """The other side of `Session`; in this process."""
    import trecexam

    assert Path(trecexam.__file__).is_relative_to(ROOT), trecexam.__file__
    with trecexam.open_track(root) as track:
        for _ in sys.stdin:
            result = track.update()
            reply = {
                "changed": result.changed,
                "complete": result.complete and not result.graded,
                "graded": result.graded,
                "why": result.why,
                "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
            print(json.dumps(reply), flush=True)


# --- what is measured ------------------------------------------------------------------------------------


class Figure(NamedTuple):
    """One line of the table."""

    key: str
    what: str
    value: str


class Bench:
    """The measurements, on the tracks in one folder."""

    def __init__(self, work: Path, limit: float) -> None:
        self.work = work
        self.limit = limit
        self._updated: dict[str, Path] = {}

    def grown(self, name: str, cold: str, warm: str) -> Iterator[Figure]:
        shape, counts = SHAPES[name], made(self.work, name)
        what = f"{name} ({shape.title}): queries x runs x ranks; pooled passages; grades; judgments"
        size = f"{shape.queries:,} x {shape.runs:,} x {shape.ranks:,}"
        size += f"; {counts['pooled']:,}; {counts['grades']:,}; {counts['judgments']:,}"
        yield Figure(f"{name}0", what, size)
        root = copied(self.work, name)
        with Session(root, self.limit) as process:
            cost = process.update()
        yield from updated(f"{cold}-first", f"{name}, first update, all grades stored, `out/` empty", cost)
        with Session(root, self.limit) as process:
            add_late(self.work, name, root, 0)
            yield from updated(cold, f"{name}, one run more, fresh process", process.update())
            add_late(self.work, name, root, 1)
            yield from updated(warm, f"{name}, one run more, warm process", process.update())
        self._updated[name] = root

    def trec_eval(self, name: str, key: str) -> Iterator[Figure]:
        program = trec_eval(self.work)
        root = self._whole(name)
        qrels = root / "out" / "rubric.qrels"
        runs = [*sorted((root / "runs").glob("run*.run")), root / "runs" / "late0.run"]
        options = ["-q", "-c", "-m", "map", "-m", "ndcg_cut", "-m", "P"]
        total = sum(cpu_seconds([program, *options, qrels, run], self.limit) for run in runs)
        what = f"{name}, trec_eval 10 `{' '.join(options)}` on {len(runs)} runs: CPU s"
        yield Figure(key, what, seconds(total))

    def _whole(self, name: str) -> Path:
        """The track with its late runs, updated by this checkout's code."""
        if name not in self._updated:
            root = copied(self.work, name)
            for number in range(SHAPES[name].late):
                add_late(self.work, name, root, number)
            progress(f"updating track {name}, not measured")
            with Session(root, self.limit) as process:
                process.update()
            self._updated[name] = root
        return self._updated[name]


MEASUREMENTS: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    "A1": lambda bench: bench.grown("A", "A1", "A3"),
    # On the track that A1 left.
    "A2": lambda bench: bench.trec_eval("A", "A2"),
    "C4": lambda bench: bench.grown("C", "C4", "C4-warm"),
    "C2": lambda bench: bench.trec_eval("C", "C2"),
    "F4": lambda bench: bench.grown("F", "F4", "F4-warm"),
}


def updated(key: str, what: str, cost: Cost) -> Iterator[Figure]:
    """The lines of one update."""
    yield Figure(key, f"{what}: CPU s", seconds(cost.cpu))
    if cost.board_cpu is not None and cost.board_wall is not None:
        yield Figure(key, f"{what}: CPU s until leaderboard.tsv is new", seconds(cost.board_cpu))
        yield Figure(key, f"{what}: wall s until leaderboard.tsv is new", seconds(cost.board_wall))
    yield Figure(key, f"{what}: wall s", seconds(cost.wall))
    yield Figure(key, f"{what}: peak MiB", f"{cost.peak_mib:,.0f}")


def seconds(value: float) -> str:
    return f"{value:.2f}"


def trec_eval(work: Path) -> Path:
    """trec_eval 10, built with its own Makefile."""
    program = work / "trec_eval-10.0" / "trec_eval"
    if not program.exists():
        archive = data_outside("trec_eval/trec_eval-10.*.tar.gz")
        subprocess.run(["tar", "xzf", archive, "-C", work], check=True)
        subprocess.run(["make", "-s"], cwd=program.parent, check=True, stderr=subprocess.DEVNULL)
    return program


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="Measurements, with commas between them.")
    parser.add_argument("--work", type=Path, help="Folder for the tracks, kept. Unset: a temporary one.")
    parser.add_argument("--limit", type=float, default=900, help="Seconds that one update may take.")
    parser.add_argument("--make", help=argparse.SUPPRESS)
    parser.add_argument("--session", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    names = given.only.split(",") if given.only else list(MEASUREMENTS)
    if unknown := [name for name in names if name not in MEASUREMENTS]:
        parser.error(f"--only: no measurement {unknown[0]}; there are {', '.join(MEASUREMENTS)}")
    given.names = [name for name in MEASUREMENTS if name in names]
    return given


def main() -> None:
    given = options()
    if given.session:
        return session(given.session)
    if given.make:
        print(json.dumps(make(given.work / "pristine" / given.make, SHAPES[given.make])))
        return None
    # So that what is open is closed and no child stays.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # Whoever runs first must not compile for all others.
    compileall.compile_dir(ROOT / "trecexam", quiet=2)
    compileall.compile_dir(ROOT / "converters", quiet=2)
    print("| | what | value |\n|---|---|---:|")
    with tempfile.TemporaryDirectory() as temporary:
        work = (given.work or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        bench = Bench(work, given.limit)
        for name in given.names:
            progress(f"measuring {name}; load of the machine, other work included: {os.getloadavg()[0]:.1f}")
            for figure in MEASUREMENTS[name](bench):
                print(f"| {' | '.join(figure)} |", flush=True)
    return None


if __name__ == "__main__":
    main()
