"""Speed and memory. Run with: bash tests/run.sh -m benchmark tests/benchmarks

With TRECEXAM_WRITE_RESULTS=1 the figures go to tests/benchmarks/results/speed.md.
"""

from __future__ import annotations

import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

import converters
import trecexam
from converters import ConversionError
from converters.passages import read_passages
from converters.trec_run import read_run
from trecexam.cli.main import run as command

pytestmark = pytest.mark.benchmark
RESULTS = Path(__file__).parent / "results" / "speed.md"
QUERIES, DEPTH = 3000, 1000

#: Fresh processes, imports not counted: on a virtual machine the first touch of memory is part of the price.
MEASURE = """
import resource, sys, time
import numpy, pyarrow.compute, pyarrow.csv
import converters.trec_run
path = sys.argv[1]
start = time.perf_counter()
{what}
seconds = time.perf_counter() - start
print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
OURS = "converters.trec_run.read_run(path)"
PYARROW = (
    "pyarrow.csv.read_csv(path, parse_options=pyarrow.csv.ParseOptions(delimiter=' '), read_options="
    "pyarrow.csv.ReadOptions(column_names=['query', 'q0', 'doc', 'rank', 'score', 'tag']))"
)


@pytest.fixture(scope="module")
def report() -> Iterator[list[str]]:
    lines: list[str] = []
    yield lines
    if os.environ.get("TRECEXAM_WRITE_RESULTS") and lines:
        model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                      if line.startswith("model name")), platform.processor())  # fmt: skip
        head = f"# Speed\n\n{os.cpu_count()} cores of {model}, Python {platform.python_version()}. "
        RESULTS.write_text(head + "Made by `TRECEXAM_WRITE_RESULTS=1 bash tests/run.sh -m benchmark "
                           "tests/benchmarks`.\n\n" + "".join(f"- {line}\n" for line in lines))  # fmt: skip


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run of 3,000 queries x 1,000 documents, as systems write them."""
    rng = random.Random(1)
    path = tmp_path_factory.mktemp("large") / "large.run"
    with path.open("w") as file:
        for query in range(QUERIES):
            score = 30.0
            for rank, doc in enumerate(rng.sample(range(8_800_000), DEPTH), 1):
                score -= rng.random() * 0.02
                file.write(f"{query + 1000} Q0 msmarco_{doc} {rank} {score:.6f} myrun\n")
    yield path
    path.unlink()


def fresh(what: str, path: Path) -> tuple[float, float]:
    words = [sys.executable, "-c", MEASURE.format(what=what), str(path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, check=True, capture_output=True, text=True, env=env)
    seconds, megabytes = done.stdout.split()
    return float(seconds), float(megabytes)


def test_a_run_of_3_million_lines_takes_at_most_twice_the_time_of_pyarrow(
    large: Path, report: list[str], benchmark: Any
) -> None:
    ours, theirs = [], []
    for _ in range(15):
        ours.append(fresh(OURS, large))
        theirs.append(fresh(PYARROW, large))
    seconds, base = (statistics.median(s for s, _ in found) for found in (ours, theirs))
    fastest, base_fastest = min(s for s, _ in ours), min(s for s, _ in theirs)
    peak = max(megabytes for _, megabytes in ours)
    report.append(
        f"Reading, checking and ordering a run of 3,000,000 lines ({large.stat().st_size / 1e6:.0f} MB): "
        f"median {seconds:.2f} s, fastest {fastest:.2f} s of 15 fresh processes; pyarrow's CSV reader on the "
        f"same file {base:.2f} s and {base_fastest:.2f} s: {seconds / base:.2f} times (fastest: "
        f"{fastest / base_fastest:.2f}). Peak memory {peak:.0f} MB."
    )
    benchmark.pedantic(read_run, (large,), rounds=3)
    assert seconds <= 2 * base
    assert peak < 600


#: The same file read by others; each needs several gigabytes for its objects.
OTHERS = {
    "pytrec_eval.parse_run": "import pytrec_eval\nstart = time.perf_counter()\n"
    "with open(path) as file: run = pytrec_eval.parse_run(file)",
    "ir_measures.read_trec_run": "import ir_measures\nstart = time.perf_counter()\n"
    "run = list(ir_measures.read_trec_run(path))",
}


def test_a_run_of_3_million_lines_is_read_faster_than_by_other_ir_libraries(
    large: Path, report: list[str]
) -> None:
    ours = statistics.median(fresh(OURS, large)[0] for _ in range(3))
    for name, what in OTHERS.items():
        seconds, megabytes = fresh(what, large)
        report.append(f"{name} on the same file: {seconds:.1f} s and {megabytes:,.0f} MB.")
        assert ours < seconds


def test_a_bad_line_among_3_million_is_reported_with_its_number(
    large: Path, tmp_path: Path, report: list[str]
) -> None:
    planted = 2_345_678
    bad = tmp_path / "bad.run"
    with large.open() as source, bad.open("w") as file:
        for number, line in enumerate(source, 1):
            file.write(line if number != planted else line.replace(" Q0 ", " "))
    with pytest.raises(ConversionError) as caught:
        read_run(bad)
    assert caught.value.line == planted
    bad.unlink()


def test_passages_are_read_at_200_megabytes_a_second(
    tmp_path: Path, report: list[str], benchmark: Any
) -> None:
    path = tmp_path / "passages.jsonl"
    text = "Heat pumps move heat from cold places to warm ones with a refrigerant that boils low. " * 4
    with path.open("w") as file:
        for number in range(250_000):
            file.write(f'{{"docid": "msmarco_{number}", "text": "{text}{number}"}}\n')
    count = benchmark.pedantic(lambda: sum(1 for _ in read_passages(path)), rounds=5)
    assert count == 250_000
    rate = path.stat().st_size / benchmark.stats.stats.median / 1e6
    report.append(f"Reading passages, JSONL of 250,000 lines: {rate:.0f} MB/s on one core.")
    assert rate >= 200


@pytest.fixture
def track(dl19: Path, tmp_path: Path) -> Path:
    root = tmp_path / "track"
    files = {
        "--bank": "bank.questions.jsonl.gz",
        "--passages": "passages.jsonl.gz",
        "--qrels": "qrels.txt",
        "--runs": "runs",
        "--recorded": "graded.flan-t5-large.jsonl.gz",
    }
    arguments = [str(part) for option, name in files.items() for part in (option, dl19 / name)]
    assert command(["init", str(root), *arguments]) == 0
    return root


def test_speed_of_a_scan_that_finds_nothing_new(track: Path, benchmark: Any, report: list[str]) -> None:
    with trecexam.open_track(track) as opened:
        opened.update()
        result = benchmark(opened.update)
        assert not result.changed
    seconds = benchmark.stats.stats.median
    report.append(f"A scan of the dl19 track (37 runs) that finds nothing new: {seconds * 1000:.0f} ms.")
    assert seconds < 0.3


def test_speed_of_a_scan_in_a_new_process(track: Path, benchmark: Any, report: list[str]) -> None:
    words = [sys.executable, "-m", "trecexam", "watch", str(track), "--once"]
    subprocess.run(words, check=True, capture_output=True, cwd=ROOT)
    benchmark.pedantic(
        subprocess.run, (words,), {"capture_output": True, "check": True, "cwd": ROOT}, rounds=10
    )
    seconds = benchmark.stats.stats.median
    report.append(f"That scan by `trecexam watch --once` in a fresh process: {seconds * 1000:.0f} ms.")
    assert seconds < 0.3


def test_speed_of_adding_the_37th_run(track: Path, benchmark: Any, report: list[str]) -> None:
    last = track / "runs" / "UNH_bm25.run"
    aside = track / "UNH_bm25.run"
    with trecexam.open_track(track) as opened:
        opened.update()

        def without() -> None:
            shutil.move(last, aside)
            opened.update()
            shutil.move(aside, last)

        benchmark.pedantic(opened.update, setup=without, rounds=10)
    seconds = benchmark.stats.stats.median
    report.append(
        f"Dropping the 37th run into it, all grades stored: {seconds * 1000:.0f} ms to new outputs."
    )


def test_speed_of_a_round_trip_of_a_graded_pool(
    dl19: Path, tmp_path: Path, benchmark: Any, report: list[str]
) -> None:
    graded, again = dl19 / "graded.flan-t5-large.jsonl.gz", tmp_path / "again.jsonl.gz"

    def round_trip() -> None:
        converters.write(converters.read(graded, "workbench"), again, "workbench")

    benchmark.pedantic(round_trip, rounds=10)
    seconds = benchmark.stats.stats.median
    report.append(
        f"Reading and writing the graded pool of dl19 (4,339 passages, 43,390 grades, gzip): {seconds:.2f} s."
    )
    assert seconds < 3


def test_speed_of_help(benchmark: Any, report: list[str]) -> None:
    words = [sys.executable, "-m", "trecexam", "--help"]
    benchmark.pedantic(
        subprocess.run, (words,), {"capture_output": True, "check": True, "cwd": ROOT}, rounds=10
    )
    seconds = benchmark.stats.stats.median
    report.append(f"`trecexam --help`: {seconds * 1000:.0f} ms.")
    assert seconds < 0.3
