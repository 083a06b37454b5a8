"""Response times of `trecexam serve` on a track with a million grades, idle and under load.

    python tests/helpers/big_track.py /tmp/big          # once, half a minute
    trecexam watch --once /tmp/big                      # once
    python tests/benchmarks/page_speed.py /tmp/big [--rounds 20] [--out FILE.md]

Every kind of page is requested, each time for another run, query, passage or item, over a keep-alive
connection: idle; while the track is reloaded continuously (a line of overrides.tsv changes after each read);
and while a writer fills the store with about ten thousand grades a second.
The track must have no overrides.tsv, and is restored at the end.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import trecexam  # noqa: E402
from trecexam.extensions.page import urls  # noqa: E402
from trecexam.line.store import GradeRow, GradeStore  # noqa: E402

#: Seconds of each part: several readings of the track fit in.
LONG = 40.0
#: Seconds between two batches of the writer: some ten thousand grades a second, more than a grader gives.
REST = 0.25


class Names:
    """Runs, queries, passages and items of the track, to ask for."""

    def __init__(self, root: Path) -> None:
        with trecexam.open_track(root) as track:
            loaded = track._loader.load()
            self.runs = list(loaded.runs)
            self.queries = list(loaded.bank.query_ids)
            self.items = {q: [i.item_id for i in items] for q, items in loaded.bank.items.items()}
            self.docs = {q: loaded.sheets[q].doc_ids for q in self.queries}
            self.words = sorted({word for text in loaded.query_texts.values() for word in text.split()})


def pages(names: Names, chance: random.Random) -> dict[str, Callable[[], str]]:
    """Kind of page -> an address of that kind, another one each time."""
    one = chance.choice

    def query() -> str:
        return one(names.queries)

    def passage(item: bool) -> str:
        q = query()
        return urls.passage(q, one(names.docs[q]), one(names.items[q]) if item else None)

    def item(**more: str) -> str:
        q = query()
        return urls.item(q, one(names.items[q]), **more)

    return {
        "leaderboard": lambda: urls.board(sort=one(["run", "group", "-nDCG@10", "official nDCG@10"])),
        "run": lambda: urls.run(one(names.runs), sort=one(["query", "-nDCG@10", "place"])),
        "run and query": lambda: urls.run_query(one(names.runs), query()),
        "queries": lambda: urls.queries(sort=one(["mean", "-unread"])),
        "query": lambda: urls.query(query()),
        "query, 250 rows": lambda: urls.query(query(), size=250),
        "query, passages with a text": lambda: urls.query(
            query(), q=" ".join(chance.choices(names.words, k=2))
        ),
        "query, disagreements": lambda: urls.query(query(), disagree="both"),
        "query, items": lambda: urls.query(query(), show="items"),
        "query, runs": lambda: urls.query(query(), show="runs"),
        "passage": lambda: passage(False),
        "passage, an answer marked": lambda: passage(True),
        "item": item,
        "item, 250 rows": lambda: item(size="250"),
        "disagreements": lambda: urls.disagreements(page=chance.randint(1, 50)),
        "disagreements, of a cell": lambda: urls.disagreements(label=one([0, 3, 5]), judgment=one([0, 1, 3])),
        "disagreements, items": lambda: urls.disagreements(show="items", page=chance.randint(1, 50)),
        "holes": lambda: urls.holes(sort=one(["-ungraded", "judged"])),
        "rejected": urls.rejected,
        "find an id": lambda: urls.search(q=one(names.docs[query()])),
        "find two words": lambda: urls.search(q=" ".join(chance.choices(names.words, k=2))),
        "find what is nowhere": lambda: urls.search(q="zzz" + str(chance.random())),
        "state": lambda: "/state",
    }


@contextmanager
def served(root: Path) -> Iterator[tuple[str, int]]:
    """The page, in a process of its own: its address and pid."""
    command = [sys.executable, "-m", "trecexam", "serve", str(root), "--port", "0"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) as child:
        assert child.stderr is not None
        line = child.stderr.readline()
        yield next(word for word in line.split() if word.startswith("http://")), child.pid
        child.send_signal(signal.SIGINT)


def get(connection: HTTPConnection, path: str) -> tuple[float, bytes]:
    """Seconds from the request to the last byte of the answer, and the answer."""
    began = time.perf_counter()
    connection.request("GET", path)
    answer = connection.getresponse()
    content = answer.read()
    seconds = time.perf_counter() - began
    assert answer.status == 200, (path, answer.status, content)
    return seconds, content


def measure(url: str, names: Names, rounds: int) -> dict[str, list[float]]:
    """Kind of page -> seconds of each answer, in so many rounds, or more, for `LONG` seconds at the least."""
    kinds = pages(names, random.Random(3))
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    connection = HTTPConnection(urlsplit(url).hostname or "", urlsplit(url).port, timeout=60)
    end = time.monotonic() + LONG
    while rounds > 0 or time.monotonic() < end:
        rounds -= 1
        for kind, address in kinds.items():
            found[kind].append(get(connection, address())[0])
            # Somebody who clicks looks at what comes, too.
            time.sleep(0.01)
    connection.close()
    return found


@contextmanager
def rereading(root: Path, names: Names, url: str) -> Iterator[dict[str, float]]:
    """A rating of a person changes again and again: as soon as it was read, the next one is there."""
    path, stop = root / "overrides.tsv", threading.Event()
    said = {"reads": 0.0}

    def change() -> None:
        connection = HTTPConnection(urlsplit(url).hostname or "", urlsplit(url).port, timeout=60)
        version = -1
        for number in itertools.count():
            now = json.loads(get(connection, "/state")[1])["version"]
            if now != version:
                said["reads"] += version >= 0
                version = now
                query = names.queries[number % len(names.queries)]
                row = (
                    query,
                    names.docs[query][0],
                    names.items[query][0],
                    str(number % 6),
                    "me",
                    "why",
                    "",
                    "",
                    "",
                )
                columns = "query_id doc_id item_id rating who why when passage_sha256 item_sha256"
                partial = path.with_suffix(".part")
                partial.write_text("\t".join(columns.split()) + "\n" + "\t".join(row) + "\n")
                partial.replace(path)
            if stop.wait(0.2):
                return

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield said
    finally:
        stop.set()
        thread.join()
        path.unlink(missing_ok=True)


@contextmanager
def writing(root: Path) -> Iterator[dict[str, float]]:
    """A process that stores grades of another grader, batch after batch, and tells how long that took."""
    command = [sys.executable, __file__, str(root), "--write"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        said: dict[str, float] = {}
        yield said
        out, _ = child.communicate("stop\n")
        said.update(json.loads(out))


def write(root: Path) -> None:
    """Stores batches until something comes in on stdin."""
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
    worst, batches = 0.0, 0
    with GradeStore(root / ".trecexam" / "grades.sqlite") as store:
        grader = store.add_grader(b"a writer of page_speed.py", "{}")
        while not stop.is_set():
            began = time.perf_counter()
            store.add(
                grader,
                (GradeRow(n % 3000 + 1, batches % 1000 + n // 3000, 1, "ok", "1") for n in range(4096)),
            )
            worst, batches = max(worst, time.perf_counter() - began), batches + 1
            time.sleep(REST)
        store.forget(grader, "ok")
    print(json.dumps({"batches": batches, "longest": worst}))


def memory(pid: int) -> int:
    """MiB of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") >> 20


def busy(pid: int) -> float:
    """Seconds of CPU that a process took so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def row(seconds: list[float]) -> list[str]:
    """Median, 95th percentile and maximum in milliseconds."""
    cuts = sorted(seconds)
    values = statistics.median(cuts), cuts[min(len(cuts) - 1, int(0.95 * len(cuts)))], cuts[-1]
    return [f"{1000 * value:.0f}" for value in values]


def report(root: Path, rounds: int) -> str:
    """The figures as Markdown."""
    names = Names(root)
    with served(root) as (url, pid):
        began = time.perf_counter()
        connection = HTTPConnection(urlsplit(url).hostname or "", urlsplit(url).port, timeout=60)
        first = get(connection, "/state")[0]
        while json.loads(get(connection, "/state")[1])["loading"]:
            time.sleep(0.1)
        loaded = time.perf_counter() - began
        child = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
        before = busy(pid)
        idle = measure(url, names, rounds)
        each = (busy(pid) - before) / sum(map(len, idle.values()))
        with rereading(root, names, url) as reads:
            rereads = measure(url, names, rounds)
        with writing(root) as written:
            writes = measure(url, names, rounds)
        sizes = memory(pid), memory(child)
    with trecexam.open_track(root) as track:
        counts = track.grading.counts()
    cells = [idle, rereads, writes]
    lines = [
        f"{len(names.queries)} queries x {len(names.runs)} runs, {counts.cells:,} grades;",
        f"{machine()}.",
        f"Made by `python tests/benchmarks/page_speed.py TRACK --rounds {rounds}`; milliseconds from the",
        "request to the last byte, each page asked for by another run, query, passage or item each time.",
        "",
        "| page | idle: median | p95 | max | while it is read again: median | p95 | max | while grades are "
        "written: median | p95 | max |",
        "|---|" + "---:|" * 9,
    ]
    for kind in idle:
        figures = [figure for one in cells for figure in row(one[kind])]
        lines.append(f"| {' | '.join([kind, *figures])} |")
    every = [list(itertools.chain.from_iterable(one.values())) for one in cells]
    lines.append(f"| **all** | {' | '.join(figure for one in every for figure in row(one))} |")
    lines += [
        "",
        f"- The first answer takes {1000 * first:.0f} ms once the address is printed; after {loaded:.1f} s",
        "  the track is read.",
        f"- CPU time of the page's process for an answer, on average, idle: {1000 * each:.1f} ms.",
        f"- Read again after a rating of a person: {int(reads['reads'])} times during the second column.",
        f"- Memory: the page {sizes[0]:,} MiB, its reader {sizes[1]:,} MiB.",
        f"- Load of the machine (1 minute), other work included: {os.getloadavg()[0]:.1f}.",
        f"- Meanwhile the writer stored {int(written['batches'])} batches of 4,096 grades, the longest in "
        f"{1000 * written['longest']:.0f} ms; none was refused.",
    ]
    return "\n".join(lines) + "\n"


def machine() -> str:
    found = [
        line.split(":")[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return f"{len(found)} cores of {found[0]}, Python {sys.version.split()[0]}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("track", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--out", type=Path, help="Markdown file to write.")
    parser.add_argument("--write", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write:
        write(given.track)
        sys.exit()
    text = "# The live page\n\n" + report(given.track, given.rounds)
    if given.out:
        given.out.write_text(text)
    print(text)
