from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from forked import start_forked, trecexam
from support import RECORDED, make_small_track, record_grades, until, write_run

from trecexam.daemon import Daemon
from trecexam.errors import LockedError
from trecexam.folder import TrackFolder
from trecexam.watching.events import file_system

CONFIG = f"{RECORDED}[watch]\npoll = 0.2\n"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_small_track(tmp_path_factory.mktemp("recorded") / "track")
    record_grades(root)
    (root / "trecexam.toml").write_text(CONFIG)
    shutil.rmtree(root / ".trecexam")
    return root


@pytest.fixture
def track(recorded: Path, tmp_path: Path) -> Path:
    root = Path(shutil.copytree(recorded, tmp_path / "track"))
    for path in root.rglob("*"):
        os.utime(path, (1e9, 1e9))
    return root


def board(root: Path) -> set[str]:
    try:
        text = (root / "out" / "leaderboard.tsv").read_text()
    except FileNotFoundError:
        return set()
    return {line.split("\t")[0] for line in text.splitlines()[1:]}


@contextmanager
def running(
    root: Path, *, poll: bool = False, settle: float | None = None
) -> Iterator[tuple[Daemon, list[str]]]:
    lines: list[str] = []
    daemon = Daemon(root, poll=poll, settle=settle, log=lines.append)
    failed: list[BaseException] = []

    def run() -> None:
        try:
            daemon.run()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield daemon, lines
    finally:
        daemon.stop()
        thread.join(20)
    assert not thread.is_alive()
    if failed:
        raise failed[0]


ALL = {"run0", "run1", "run2"}


@pytest.mark.parametrize("poll", [False, True])
def test_dropped_replaced_and_removed_runs_are_on_the_leaderboard(
    track: Path, poll: bool, tmp_path: Path
) -> None:
    with running(track, poll=poll, settle=0.3):
        until(lambda: board(track) == ALL)
        write_run(track / "runs" / "deep" / "er" / "new.run", {"q1": ["q1-d00"]})
        until(lambda: board(track) == ALL | {"new"})
        several = [write_run(tmp_path / f"s{n}.run", {"q1": ["q1-d01"]}) for n in range(3)]
        for path in several:
            path.rename(track / "runs" / path.name)
        until(lambda: board(track) == ALL | {"new", "s0", "s1", "s2"})
        write_run(tmp_path / "moved", {"q1": ["q1-d02"]}, tag="renamed").rename(track / "runs" / "s0.run")
        os.link(write_run(tmp_path / "linked.run", {"q1": ["q1-d00"]}), track / "runs" / "linked.run")
        until(lambda: board(track) == ALL | {"new", "s1", "s2", "renamed", "linked"})
        for name in ("run0.run", "s1.run", "s2.run", "s0.run"):
            (track / "runs" / name).unlink()
        until(lambda: board(track) == {"run1", "run2", "new", "linked"})


def test_a_file_still_being_written_waits_until_it_is_closed(track: Path) -> None:
    with running(track, settle=30) as (daemon, _):
        until(lambda: daemon.updates == 1)
        with (track / "runs" / "slow.run").open("w") as file:
            file.write("q1 Q0 q1-d00 1 9.0 slow\n")
            file.flush()
            time.sleep(1.0)
            assert board(track) == ALL
            # One more check noticed the waiting file; further growth must not cause more.
            assert daemon.updates <= 2
            file.write("q1 Q0 q1-d01 2 8.0 slow\n")
        until(lambda: "slow" in board(track), 10)


def test_a_run_moved_in_from_outside_is_read_at_once(track: Path, tmp_path: Path) -> None:
    with running(track, settle=60) as (_, lines):
        until(lambda: board(track) == ALL)
        # Written just now: by its age alone it would wait for a minute.
        path = write_run(tmp_path / "moved.run", {"q1": ["q1-d00"]})
        path.rename(track / "runs" / path.name)
        until(lambda: board(track) == ALL | {"moved"}, 10)
    assert not any("looking" in line for line in lines)


def test_what_is_said_of_a_run_is_logged_once_and_the_next_run_is_accepted(track: Path) -> None:
    with running(track, settle=0.2) as (_, lines):
        until(lambda: board(track) == ALL)
        (track / "runs" / "bad.run").write_text("q1 Q0 q1-d00 1\n")
        write_run(track / "runs" / "more.run", {"q1": ["q1-d00"], "q9": ["q1-d00"]})
        until(lambda: any("rejected: runs/bad.run" in line for line in lines))
        until(lambda: any("note: runs/more.run:2: 1 of its 2 queries are not" in line for line in lines))
        write_run(track / "runs" / "good.run", {"q1": ["q1-d00"]})
        until(lambda: board(track) == ALL | {"more", "good"})
    assert sum("note: runs/more.run" in line for line in lines) == 1
    assert sum("rejected: runs/bad.run" in line for line in lines) == 1


def test_a_broken_bank_is_reported_once_and_waits_to_be_fixed(track: Path) -> None:
    bank = track / "bank.questions.jsonl"
    good = bank.read_text()
    with running(track, settle=0.1) as (_, lines):
        until(lambda: board(track) == ALL)
        bank.write_text(good[:-20] + "\n")
        until(lambda: any("cannot go on until this is mended" in line for line in lines))
        time.sleep(1)
        assert sum("cannot go on" in line for line in lines) == 1
        assert board(track) == ALL
        bank.write_text(good.replace("question 0 of q1?", "edited?"))
        until(
            lambda: (
                json.loads((track / "out" / "manifest.json").read_text())["counts"]["ok"] > 0
                and "cannot go on" not in lines[-1]
            )
        )


def test_settings_written_while_they_are_read_are_read_again(
    track: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = TrackFolder.open
    wanted = CONFIG + '[scores]\nmeasures = ["P(rel=4)@5"]\n'

    def overtaken(root: Path) -> TrackFolder:
        folder = read(root)
        if (track / "trecexam.toml").read_text() != wanted:
            (track / "trecexam.toml").write_text(wanted)
        return folder

    monkeypatch.setattr("trecexam.daemon.TrackFolder.open", overtaken)
    with running(track, settle=0.1):
        until(lambda: (track / "out" / "leaderboard.tsv").exists())
        until(lambda: (track / "out" / "leaderboard.tsv").read_text().startswith("run\tP(rel=4)@5\t"))


def test_a_track_has_at_most_one_daemon_and_nothing_new_means_no_update(track: Path) -> None:
    with running(track, settle=0.0) as (daemon, _):
        until(lambda: daemon.updates == 1)
        with pytest.raises(LockedError, match=str(os.getpid())):
            Daemon(track, log=lambda line: None).run()
        time.sleep(1.0)
        assert daemon.updates == 1


def test_the_file_system_of_a_path_is_the_longest_matching_mount() -> None:
    mounts = "/dev/sda / ext4 rw 0 0\nserver:/x /mnt/my\\040share nfs4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n"
    assert file_system(Path("/mnt/my share/track"), mounts) == "nfs4"
    assert file_system(Path("/home/me"), mounts) == "ext4"
    assert file_system(Path("/home/me"), "") == ""


@contextmanager
def started(track: Path, printed: Path, *options: str) -> Iterator[BaseProcess]:
    """A daemon in a separate process; killed if the block leaves it running."""
    child = start_forked(trecexam, ["watch", str(track), *options], folder=track, output=printed)
    try:
        yield child
    finally:
        child.kill()
        child.join()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_stops_the_daemon_with_consistent_outputs_and_a_free_lock(
    track: Path, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    printed = tmp_path / "printed"
    with started(track, printed) as child:
        until(lambda: (track / "out" / "manifest.json").exists())
        assert child.pid is not None
        os.kill(child.pid, number)
        child.join(20)
    assert child.exitcode == status, printed.read_text()
    assert printed.read_text().rstrip().endswith("stopped")
    assert (track / ".trecexam" / "lock").read_text() == ""


def test_a_killed_daemon_resumes_when_restarted(track: Path, tmp_path: Path) -> None:
    printed = tmp_path / "printed"
    with started(track, printed, "--settle", "0.1") as child:
        until(lambda: board(track) == ALL)
        child.kill()
        child.join()
    shutil.copy(track / "runs" / "run0.run", track / "runs" / "again.run")
    with started(track, printed, "--settle", "0.1") as child:
        until(lambda: len(board(track)) == 4)
        child.terminate()
        child.join(20)
    assert child.exitcode == 0
    assert "nothing to grade" in printed.read_text()
