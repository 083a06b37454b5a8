"""Pipes, sockets, devices, folders and broken symlinks as inputs: each is reported, none hangs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from forked import start_forked, trecexam
from irregular import update_with_each_kind
from support import RECORDED

from converters.errors import StoppedError
from converters.lines import iter_lines, stoppable
from trecexam.cli.main import run

#: After this many seconds an update counts as hanging.
PATIENCE = 100
OFFICIAL = '{"run0": 1, "run1": 2, "run2": 3}'
HEADER = "query_id\tdoc_id\titem_id\trating\twho\twhy\n"
NAMES = (
    "queries.tsv",
    "passages.jsonl",
    "qrels.txt",
    "official_leaderboard.json",
    "overrides.tsv",
    "bank.questions.jsonl",
    "grades.jsonl",
    "trecexam.toml",
    "runs/run1.run",
)
#: Without these there is nothing to update.
NEEDED = ("bank.questions.jsonl", "grades.jsonl", "trecexam.toml")


def status_of(child: BaseProcess, printed: Path) -> int | None:
    child.join(PATIENCE)
    if child.is_alive():
        child.kill()
        child.join()
        pytest.fail(f"hangs: {printed.read_text().splitlines()[-1:]}")
    return child.exitcode


@pytest.mark.parametrize("name", NAMES)
def test_an_input_that_is_not_a_file_is_reported_at_once(graded: Path, tmp_path: Path, name: str) -> None:
    (graded / "overrides.tsv").write_text(HEADER)
    (graded / "official_leaderboard.json").write_text(OFFICIAL)
    printed = tmp_path / "printed"
    child = start_forked(update_with_each_kind, graded, name, folder=tmp_path, output=printed)
    assert status_of(child, printed) == 0, printed.read_text()
    lines = [json.loads(line) for line in printed.read_text().splitlines()]
    results = [line for line in lines if "kind" in line]
    assert [line["kind"] for line in results] == ["pipe", "socket", "device", "folder", "link"]
    for line in results:
        if name == "runs/run1.run" and line["kind"] == "folder":
            # Runs may be in sub-folders.
            assert line["status"] == 0, line
            continue
        assert line["status"] == (2 if name in NEEDED else 1), line
        assert Path(name).name in line["said"], line
        assert "Traceback" not in line["said"], line
        if name not in NEEDED:
            assert any(row.startswith(f"{name}\t") for row in line["rejected"].splitlines()), line


def test_an_endless_device_is_rejected_as_passages(graded: Path, tmp_path: Path) -> None:
    settings = RECORDED.replace("[track]", '[track]\npassages = "/dev/zero"')
    (graded / "trecexam.toml").write_text(settings)
    printed = tmp_path / "printed"
    child = start_forked(trecexam, ["watch", str(graded), "--once"], folder=tmp_path, output=printed)
    assert status_of(child, printed) == 1
    assert "/dev/zero: is a pipe or a device" in printed.read_text()


def test_a_broken_symlink_in_runs_is_reported_even_as_the_only_change(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    (graded / "runs" / "run1.run").rename(graded / "away.run")
    (graded / "runs" / "run1.run").symlink_to(graded / "gone.run")
    assert run(["watch", str(graded), "--once"]) == 1
    assert "rejected: runs/run1.run: is a link to a file that is not there" in capsys.readouterr().err
    (graded / "runs" / "other.run").symlink_to("nowhere")
    assert run(["watch", str(graded), "--once"]) == 1
    assert (
        "rejected: runs/other.run: is a link to a file that is not there: nowhere" in capsys.readouterr().err
    )
    (graded / "away.run").rename(graded / "gone.run")
    (graded / "runs" / "other.run").unlink()
    assert run(["watch", str(graded), "--once"]) == 0
    assert len((graded / "out" / "leaderboard.tsv").read_text().splitlines()) == 4


def test_temporary_files_of_editors_in_runs_are_not_reported(graded: Path) -> None:
    (graded / "runs" / ".#run1.run").symlink_to("ann@host.123")
    (graded / "runs" / "x.part").symlink_to("nowhere")
    os.mkfifo(graded / "runs" / ".pipe")
    assert run(["watch", str(graded), "--once"]) == 0


def test_reading_a_large_file_stops_on_request(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"a b c\n" * 4_000_000)
    lines = iter_lines(path)
    with stoppable(lambda: True):
        next(lines)
    read: list[bytes] = []
    with pytest.raises(StoppedError):
        read.extend(line for _, line in lines)
    assert 0 < len(read) < 3_500_000
    with stoppable(lambda: False):
        assert sum(1 for _ in iter_lines(path)) == 4_000_000


def slow_update(root: Path, printed: Path) -> BaseProcess:
    """An update that reads a file of a terabyte, most of it sparse, once it has begun."""
    with (root / "passages.jsonl").open("r+b") as file:
        file.truncate(1 << 40)
    child = start_forked(trecexam, ["watch", str(root), "--once"], folder=root, output=printed)
    end = time.monotonic() + PATIENCE
    while read_by(child) < 1 << 26 and time.monotonic() < end:
        time.sleep(0.05)
    assert child.is_alive()
    return child


def read_by(child: BaseProcess) -> int:
    return int(Path(f"/proc/{child.pid}/io").read_text().split()[1])


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_stops_an_update_that_reads_an_endless_file(
    graded: Path, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    before = {path.name: path.read_bytes() for path in (graded / "out").glob("*.tsv")}
    child = slow_update(graded, tmp_path / "printed")
    try:
        assert child.pid is not None
        os.kill(child.pid, number)
        child.join(20)
        assert child.exitcode == status
    finally:
        child.kill()
        child.join()
    assert {path.name: path.read_bytes() for path in (graded / "out").glob("*.tsv")} == before


def test_a_second_sigterm_kills_a_process_that_ignores_the_first(tmp_path: Path) -> None:
    code = (
        "import time, signal\nfrom trecexam.cli.signals import signals\n"
        "with signals(lambda: None):\n    print('here', flush=True)\n    time.sleep(50)\n    time.sleep(50)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        # Like `timeout`, to the process and to its group.
        child.send_signal(signal.SIGTERM)
        child.send_signal(signal.SIGTERM)
        time.sleep(1)
        assert child.poll() is None
        child.send_signal(signal.SIGTERM)
        assert child.wait(10) == 143
    finally:
        child.kill()
        child.communicate()
