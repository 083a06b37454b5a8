"""Cost of an update: CPU seconds, memory, and time until the leaderboard. No model runs.

    python tests/benchmarks/update_cost.py --label before [--only A1,B4] [--large]
        [--work FOLDER] [--json FILE.jsonl] [--out FILE.md]

Tracks are made once in the folder --work (by default a temporary one) and are reused by later calls,
also from other checkouts; each measurement works on a copy. Each measurement is a separate process in the
checkout of this file, and counts its CPU seconds (user and system, with children), which other load changes
least. --json adds a line for each figure; the table has a column for each label in that file, so that calls
with different labels can be compared.

Measurements (--only): help; A1 (one run more, in a fresh process, then another one in the same process; A3 is
the same); A1-noqrels; A1-grade (A7 is the same); A2 (trec_eval 10); A5 (commands); B4; C4; D4 (--large); E6
(the daemon). Tracks, queries x runs x ranks: A 300 x 20 x 1,000, B 100 x 60 x 20, C 300 x 100 x 20, D
1,000 x 200 x 20; E is TREC DL 2019 in ../shared/dl19.
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
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]

from outside import outside as data_outside  # noqa: E402

PYTHON = [sys.executable]
TRECEXAM = [*PYTHON, "-m", "trecexam"]
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


NOTES = """
- CPU seconds of the same work differ by up to a fifth with the load of the machine; wall seconds by more.
- "First update" and "fresh process" count from the start of Python to the end of the update; "warm process"
  is the process that has just added another run.
- The grader of A to D is one behind a server, whose answers (a digit, no probabilities) are stored and read
  again; that of A1-grade gives six probabilities with each answer, as that of `track_size.py`.
- trec_eval is built by its own Makefile, without optimization (`-O2` saves a tenth). It scores one set
  of judgments; an update of A scores two.
- From C to D there are 3.3 times the pooled passages, 2.2 the grades and 6.7 the runs x queries. Costs grow
  3.4 times, one run more in a warm process 4.5 times, memory 2.5 to 2.9 times.
- E: wall seconds are a median, with the fastest and the slowest; CPU seconds are all that the daemon takes
  for that run, until it rests again.
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
    "B": Shape("100 x 60", 100, 60, 20, 484, 10),
    "C": Shape("rag", 300, 100, 20, 504, 15),
    "D": Shape("large", 1000, 200, 20, 420, 10),
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
    from trecexam.graders import create
    from trecexam.graders.base import identity_digest, identity_json
    from trecexam.line.store import GradeRow, GradeStore
    from trecexam.track import TrackFolder

    folder = TrackFolder.open(root)
    identity = create(folder.config.grader, root).identity
    count = 0
    with GradeStore(folder.store_path) as store:
        grader = store.add_grader(identity_digest(identity), identity_json(identity))
        for questions, texts, ratings in grades:
            items = store.add_items([asked_digest(Item("", "", text, "question", ())) for text in questions])
            passages = store.add_passages([passage_digest(text) for text in texts])
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


def copied(work: Path, name: str, *, official: bool = True, graded: bool = True) -> Path:
    """A copy of the track to work on. Its inputs are hard links; its store, which is written to, is not."""
    made(work, name)
    pristine, root = work / "pristine" / name / "track", work / "state" / name
    shutil.rmtree(root, ignore_errors=True)
    root.parent.mkdir(parents=True, exist_ok=True)
    left_out = shutil.ignore_patterns(".trecexam", *([] if official else ["qrels.txt"]))
    shutil.copytree(pristine, root, copy_function=os.link, ignore=left_out)
    # It is a text file that people edit.
    (root / "trecexam.toml").unlink()
    shutil.copy2(pristine / "trecexam.toml", root)
    if graded:
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
    rate: float = 0.0


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


def command(words: Sequence[str | Path], limit: float) -> Cost:
    """A whole process, from its start to its end."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            list(map(str, words)),
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd=ROOT,
            env=environment(),
            preexec_fn=die_with_parent,
        )
        timer = threading.Timer(limit, child.kill)
        timer.start()
        try:
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        finally:
            timer.cancel()
            if child.returncode is None:
                child.kill()
        wall = time.monotonic() - began
        if child.returncode:
            errors.seek(0)
            tail = errors.read().decode(errors="replace").strip()[-400:]
            raise RuntimeError(f"{' '.join(map(str, words[-4:]))}: status {child.returncode}: {tail}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


class Session:
    """A process that holds a track open and updates it each time it is told to."""

    def __init__(self, root: Path, limit: float, *, instant: bool = False) -> None:
        self._board = root / "out" / "leaderboard.tsv"
        self._limit = limit
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._is_fresh = True
        words = [*PYTHON, __file__, "--session", str(root), *(["--instant"] if instant else [])]
        self._child = subprocess.Popen(
            words,
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
        return Cost(cpu, wall, reply["peak_mib"], *(board or (None, None)), reply["rate"])


def session(root: Path, instant: bool) -> None:
    """The other side of `Session`; in this process."""
    import trecexam

    assert Path(trecexam.__file__).is_relative_to(ROOT), trecexam.__file__
    grader = None
    if instant:
        from track_size import InstantGrader

        grader = InstantGrader(plain=False)
    with trecexam.open_track(root, grader=grader) as track:
        for _ in sys.stdin:
            reports: list[tuple[float, int]] = []
            result = track.update(
                progress=lambda report, to=reports: to.append((time.perf_counter(), report.graded))
            )
            # As track_size.py has it: without the first batch, before which a process warms up.
            rate = 0.0
            if len(reports) > 1:
                rate = (reports[-1][1] - reports[0][1]) / (reports[-1][0] - reports[0][0])
            reply = {
                "changed": result.changed,
                "complete": result.complete and (instant or not result.graded),
                "graded": result.graded,
                "why": result.why,
                "rate": rate,
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

    def __init__(self, work: Path, limit: float, rounds: int) -> None:
        self.work = work
        self.limit = limit
        self.rounds = rounds
        self._updated: dict[str, Path] = {}

    def help(self) -> Iterator[Figure]:
        costs = [command([*TRECEXAM, "--help"], 60) for _ in range(2 * self.rounds)]
        yield Figure("help", "`trecexam --help`: CPU s", seconds(median(costs), 3))
        costs = [
            command([*PYTHON, "-X", "importtime", *TRECEXAM[1:], "--help"], 60)
            for _ in range(2 * self.rounds)
        ]
        yield Figure("help", "`python -X importtime -m trecexam --help`: CPU s", seconds(median(costs), 3))

    def a1(self) -> Iterator[Figure]:
        yield from self._grown("A", "A1", "A3")

    def a1_noqrels(self) -> Iterator[Figure]:
        yield from self._grown("A", "A1-noqrels", "A3-noqrels", official=False)

    def a1_grade(self) -> Iterator[Figure]:
        root = self._copy("A", graded=False)
        with Session(root, self.limit, instant=True) as process:
            cost = process.update()
        yield from updated("A1-grade", "A, first update, a grader that answers at once", cost)
        yield Figure("A7", "A, cells stored a second", f"{cost.rate:,.0f}")
        shutil.rmtree(root)

    def a2(self) -> Iterator[Figure]:
        program = trec_eval(self.work)
        root = self._whole("A")
        qrels = root / "out" / "rubric.qrels"
        runs = [*sorted((root / "runs").glob("run*.run")), root / "runs" / "late0.run"]
        options = ["-q", "-c", "-m", "map", "-m", "ndcg_cut", "-m", "P"]
        costs = [command([program, *options, qrels, run], self.limit) for run in runs]
        total = sum(cost.cpu for cost in costs)
        what = f"A, trec_eval 10 `{' '.join(options)}` on {len(runs)} runs: CPU s"
        yield Figure("A2", what, seconds(total))

    def a5(self) -> Iterator[Figure]:
        for name in ("leaderboard", "status", "holes"):
            yield from self._command("A5", "A", name)

    def b4(self) -> Iterator[Figure]:
        yield from self._grown("B", "B4", "B4-warm")

    def c4(self) -> Iterator[Figure]:
        yield from self._grown("C", "C4", "C4-warm")
        yield from self._command("C4", "C", "leaderboard")

    def d4(self) -> Iterator[Figure]:
        yield from self._grown("D", "D4", "D4-warm")
        yield from self._command("D4", "D", "leaderboard")

    def e6(self) -> Iterator[Figure]:
        yield from daemon(self.work / "state" / "E", self.rounds)

    def _grown(self, name: str, cold: str, warm: str, *, official: bool = True) -> Iterator[Figure]:
        shape, counts = SHAPES[name], made(self.work, name)
        title = name if official else f"{name} without official judgments"
        if official:
            what = f"{name} ({shape.title}): queries x runs x ranks; pooled passages; grades; judgments"
            size = f"{shape.queries:,} x {shape.runs} x {shape.ranks:,}"
            yield Figure(
                f"{name}0",
                what,
                f"{size}; {counts['pooled']:,}; {counts['grades']:,}; {counts['judgments']:,}",
            )
        root = self._copy(name, official=official)
        with Session(root, self.limit) as process:
            cost = process.update()
        yield from updated(f"{cold}-first", f"{title}, first update, all grades stored, `out/` empty", cost)
        with Session(root, self.limit) as process:
            add_late(self.work, name, root, 0)
            yield from updated(cold, f"{title}, one run more, fresh process", process.update())
            add_late(self.work, name, root, 1)
            yield from updated(warm, f"{title}, one run more, warm process", process.update())
        if official:
            self._updated[name] = root

    def _copy(self, name: str, *, official: bool = True, graded: bool = True) -> Path:
        self._updated.pop(name, None)
        return copied(self.work, name, official=official, graded=graded)

    def _whole(self, name: str) -> Path:
        """The track with its late runs, updated by this checkout's code."""
        if name not in self._updated:
            root = self._copy(name)
            for number in range(SHAPES[name].late):
                add_late(self.work, name, root, number)
            progress(f"updating track {name}, not measured")
            with Session(root, self.limit) as process:
                process.update()
            self._updated[name] = root
        return self._updated[name]

    def _command(self, key: str, track: str, name: str) -> Iterator[Figure]:
        root = self._whole(track)
        costs = [command([*TRECEXAM, name, root], self.limit) for _ in range(min(3, self.rounds))]
        what = f"{track}, `trecexam {name}`, fresh process"
        yield Figure(key, f"{what}: CPU s", seconds(median(costs)))
        yield Figure(key, f"{what}: wall s", seconds(statistics.median(cost.wall for cost in costs)))


MEASUREMENTS: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    "help": Bench.help,
    "A1": Bench.a1,
    # On the track that A1 left.
    "A2": Bench.a2,
    "A5": Bench.a5,
    "A1-noqrels": Bench.a1_noqrels,
    "A1-grade": Bench.a1_grade,
    "B4": Bench.b4,
    "C4": Bench.c4,
    "D4": Bench.d4,
    "E6": Bench.e6,
}
ALIASES = {"A3": "A1", "A7": "A1-grade"}


def updated(key: str, what: str, cost: Cost) -> Iterator[Figure]:
    """The lines of one update."""
    yield Figure(key, f"{what}: CPU s", seconds(cost.cpu))
    if cost.board_cpu is not None and cost.board_wall is not None:
        yield Figure(key, f"{what}: CPU s until leaderboard.tsv is new", seconds(cost.board_cpu))
        yield Figure(key, f"{what}: wall s until leaderboard.tsv is new", seconds(cost.board_wall))
    yield Figure(key, f"{what}: wall s", seconds(cost.wall))
    yield Figure(key, f"{what}: peak MiB", f"{cost.peak_mib:,.0f}")


def seconds(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}"


def median(costs: Sequence[Cost]) -> float:
    """CPU seconds of the middle one."""
    return statistics.median(cost.cpu for cost in costs)


def trec_eval(work: Path) -> Path:
    """trec_eval 10, built with its own Makefile."""
    program = work / "trec_eval-10.0" / "trec_eval"
    if not program.exists():
        archive = data_outside("trec_eval/trec_eval-10.*.tar.gz")
        subprocess.run(["tar", "xzf", archive, "-C", work], check=True)
        subprocess.run(["make", "-s"], cwd=program.parent, check=True, stderr=subprocess.DEVNULL)
    return program


# --- the daemon ------------------------------------------------------------------------------------------


def daemon(root: Path, rounds: int) -> Iterator[Figure]:
    """How soon a running daemon has a dropped run on the leaderboard: TREC DL 2019, 37 runs."""
    dl19 = data_outside("dl19")
    shutil.rmtree(root, ignore_errors=True)
    root.parent.mkdir(parents=True, exist_ok=True)
    files = {
        "--queries": "queries.tsv",
        "--bank": "bank.questions.jsonl.gz",
        "--passages": "passages.jsonl.gz",
        "--qrels": "qrels.txt",
        "--runs": "runs",
        "--recorded": "graded.flan-t5-large.jsonl.gz",
    }
    options = [part for option, name in files.items() for part in (option, dl19 / name)]
    command([*TRECEXAM, "init", root, *options], 60)
    shutil.copy(dl19 / "official_leaderboard.json", root)
    sources = sorted((dl19 / "runs").glob("*.run"))
    outside = root.parent / "E-outside"
    shutil.rmtree(outside, ignore_errors=True)
    outside.mkdir()
    command([*TRECEXAM, "watch", root, "--once"], 120)

    def text(number: int, name: str) -> str:
        """One of the runs under another name."""
        rows = [line.split() for line in sources[number].read_text().splitlines()]
        return "".join(f"{' '.join(row[:5])} {name}\n" for row in rows)

    def moved(number: int, name: str, age: float) -> float:
        path = outside / f"{name}.run"
        path.write_text(text(number, name))
        os.utime(path, (time.time() - age,) * 2)
        began = time.monotonic()
        path.rename(root / "runs" / path.name)
        return began

    def copied_in_pieces(number: int, name: str, _: float) -> float:
        content = text(number, name)
        half = len(content) // 2
        with (root / "runs" / f"{name}.run").open("w") as file:
            file.write(content[:half])
            file.flush()
            time.sleep(0.5)
            file.write(content[half:])
        return time.monotonic()

    yield Figure("E6", "E (TREC DL 2019, 37 runs), `settle` in force: s", seconds(settle_of(root), 1))
    ways = (
        ("first", "the first run since the daemon's start, moved in, written a minute ago", moved, 60.0, 1),
        ("old", "a run moved in that was written a minute ago", moved, 60.0, rounds),
        ("new", "a run moved in that was written just before", moved, 0.0, rounds),
        ("pieces", "a run copied in two pieces, from its last byte on", copied_in_pieces, 0.0, rounds),
    )
    with watching(root) as pid:
        for word, what, drop, age, times in ways:
            walls, cpus = [], []
            for number in range(times):
                name = f"{word}{number}"
                base = cpu_of(pid)
                began = drop(number, name, age)
                wait_for(lambda name=name: name in on_board(root))
                walls.append(time.monotonic() - began)
                wait_until_idle(pid)
                cpus.append(cpu_of(pid) - base)
                # There are 37 runs before each.
                (root / "runs" / f"{name}.run").unlink()
                wait_for(lambda name=name: name not in on_board(root))
                wait_until_idle(pid)
            spread = seconds(statistics.median(walls))
            if times > 1:
                spread += f" ({min(walls):.2f} to {max(walls):.2f})"
            yield Figure("E6", f"E, {what}: wall s until leaderboard.tsv names it", spread)
            yield Figure("E6", f"E, {what}: CPU s of the daemon", seconds(statistics.median(cpus)))


def settle_of(root: Path) -> float:
    """Seconds that the track's settings, or else the program, let a file be still."""
    from trecexam.track import TrackFolder

    return TrackFolder.open(root).config.watch.settle


def on_board(root: Path) -> set[str]:
    try:
        lines = (root / "out" / "leaderboard.tsv").read_text().splitlines()
    except OSError:
        return set()
    return {line.split("\t", 1)[0] for line in lines[1:]}


def wait_for(condition: Callable[[], bool], limit: float = 60.0) -> None:
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"the daemon did not come to it in {limit:.0f} s")
        time.sleep(LOOK)


def wait_until_idle(pid: int, limit: float = 60.0) -> None:
    """Until the process did next to nothing for a second: what it had to write is written."""
    end, before = time.monotonic() + limit, -1.0
    while (now := cpu_of(pid)) > before + 0.05 and time.monotonic() < end:
        before = now
        time.sleep(1)


@contextmanager
def watching(root: Path) -> Iterator[int]:
    """The daemon, in a process of its own; its pid."""
    log = root.parent / "E.log"
    with log.open("w") as errors:
        child = subprocess.Popen(
            [*TRECEXAM, "watch", str(root)],
            stdout=errors,
            stderr=errors,
            cwd=ROOT,
            env=environment(),
            preexec_fn=die_with_parent,
        )
        try:
            wait_for(lambda: "watching" in log.read_text())
            time.sleep(1)
            wait_until_idle(child.pid)
            yield child.pid
        finally:
            child.terminate()
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


# --- the table -------------------------------------------------------------------------------------------


def table(records: Sequence[dict[str, str]]) -> str:
    """Figures as Markdown: a line for each, a column for each label; a later figure replaces an earlier."""
    labels = list(dict.fromkeys(record["label"] for record in records))
    values = {(record["what"], record["label"]): record["value"] for record in records}
    lines = dict.fromkeys((record["key"], record["what"]) for record in records)
    # What belongs to no track first; then track by track, as measured.
    ordered = sorted(lines, key=lambda line: line[0][0] if line[0][0] in SHAPES or line[0] == "E6" else "")
    rows = [
        f"| {key} | {what} | {' | '.join(values.get((what, label), '') for label in labels)} |"
        for key, what in ordered
    ]
    head = [f"| | what | {' | '.join(labels)} |", "|---|---|" + "---:|" * len(labels)]
    return "\n".join([*head, *rows]) + "\n"


def with_ratios(records: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """The same, and how many times trec_eval's CPU seconds an update takes, where both are there."""
    more = []
    for label in dict.fromkeys(record["label"] for record in records):
        cpu = {
            record["key"]: float(record["value"])
            for record in records
            if record["label"] == label and record["what"].endswith(": CPU s")
        }
        for key, what in (("A1", "fresh process"), ("A3", "warm process")):
            if key in cpu and "A2" in cpu:
                ratio = f"{cpu[key] / cpu['A2']:.1f}"
                title = f"A, one run more, {what}: CPU s, times trec_eval's"
                more.append({"label": label, "key": "A2", "what": title, "value": ratio})
    return [*records, *more]


def report(records: Sequence[dict[str, str]]) -> str:
    from track_size import machine

    return (
        f"# What an update costs\n\n{machine()}, a virtual machine that others use too. Made by\n"
        "`python tests/benchmarks/update_cost.py --label LABEL --json FILE.jsonl --out FILE.md`; its head\n"
        f"says how it is measured.\n\n{table(with_ratios(records))}{NOTES}"
    )


def read_records(path: Path | None) -> list[dict[str, str]]:
    if path is None or not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def measure(bench: Bench, names: Sequence[str], label: str, json_file: Path | None) -> list[dict[str, str]]:
    """Runs the measurements one after the other; one that fails is a line that says so."""
    records = []
    for name in names:
        progress(f"measuring {name}; load of the machine, other work included: {os.getloadavg()[0]:.1f}")
        try:
            for figure in MEASUREMENTS[name](bench):
                progress(f"{figure.key} {figure.what}: {figure.value}")
                records.append({"label": label, **figure._asdict()})
                if json_file is not None:
                    with json_file.open("a") as file:
                        file.write(json.dumps(records[-1]) + "\n")
        except Exception as error:
            progress(f"{name} failed: {type(error).__name__}: {error}")
            records.append({"label": label, "key": name, "what": name, "value": "failed"})
    return records


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--label", default="now", help="Head of the column.")
    parser.add_argument("--only", help="Measurements, with commas between them.")
    parser.add_argument("--large", action="store_true", help="D too: some four million grades.")
    parser.add_argument("--work", type=Path, help="Folder for the tracks, kept. Unset: a temporary one.")
    parser.add_argument("--rounds", type=int, default=5, help="Of commands and of runs dropped.")
    parser.add_argument("--limit", type=float, default=900, help="Seconds that one update may take.")
    parser.add_argument("--json", type=Path, help="File to add the figures to, a line each.")
    parser.add_argument("--out", type=Path, help="Markdown file to write, of all figures in --json.")
    parser.add_argument("--make", help=argparse.SUPPRESS)
    parser.add_argument("--session", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--instant", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    names = [ALIASES.get(name, name) for name in given.only.split(",")] if given.only else list(MEASUREMENTS)
    if unknown := [name for name in names if name not in MEASUREMENTS]:
        parser.error(f"--only: no measurement {unknown[0]}; there are {', '.join(MEASUREMENTS)}")
    given.names = [name for name in MEASUREMENTS if name in names and (name != "D4" or given.large)]
    return given


def main() -> None:
    given = options()
    if given.session:
        return session(given.session, given.instant)
    if given.make:
        print(json.dumps(make(given.work / "pristine" / given.make, SHAPES[given.make])))
        return None
    # So that what is open is closed and no child stays.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    earlier = read_records(given.json)
    # Whoever runs first must not compile for all others.
    compileall.compile_dir(ROOT / "trecexam", quiet=2)
    compileall.compile_dir(ROOT / "converters", quiet=2)
    with tempfile.TemporaryDirectory() as temporary:
        work = (given.work or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        records = measure(Bench(work, given.limit, given.rounds), given.names, given.label, given.json)
    text = report([*earlier, *records])
    if given.out:
        given.out.write_text(text)
    print(text)
    return None


if __name__ == "__main__":
    main()
