from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import graded_track

import trecexam
from trecexam.extensions.page import child
from trecexam.extensions.page.grading import Busy, GradingEnded, GradingState, Line, Regrader, grade
from trecexam.files.track_lock import TrackLock
from trecexam.line.grading import Progress


@contextmanager
def running(work: child.Work, root: Path, **seconds: float) -> Iterator[tuple[Regrader, list[str]]]:
    lines: list[str] = []
    regrader = Regrader(root, log=lines.append, make=lambda: child.Thread(work, root), **seconds)
    with regrader:
        yield regrader, lines


def until(holds: Callable[[], bool]) -> None:
    """Waits; an endless wait is ended by pytest-timeout."""
    while not holds():
        time.sleep(0.01)


def wait_for_end(receive: child.Receive) -> None:
    try:
        while True:
            receive(0.02)
    except EOFError:
        pass


def test_progress_can_be_read_while_grading_runs(tmp_path: Path) -> None:
    go = threading.Event()

    def work(root: Path, receive: child.Receive, say: child.Say) -> None:
        say(Line("hello"))
        say(Progress(3, 10))
        say(Progress(5, 10))
        go.wait()
        say(GradingEnded(""))
        wait_for_end(receive)

    began = time.time()
    with running(work, tmp_path) as (regrader, lines):
        try:
            until(lambda: regrader.now.done == 5)
            assert regrader.now.total == 10
            assert regrader.now.since is not None
            assert began <= regrader.now.since
        finally:
            # Otherwise the end of `running` would wait for it.
            go.set()
        until(lambda: regrader.now == GradingState())
        assert lines == ["hello"]


def test_a_failure_is_kept_shown_once_and_cleared_when_fixed(tmp_path: Path) -> None:
    broken = True

    def work(root: Path, receive: child.Receive, say: child.Say) -> None:
        try:
            while True:
                say(GradingEnded("the disk is full" if broken else ""))
                receive(0.02)
        except EOFError:
            pass

    with running(work, tmp_path) as (regrader, lines):
        until(lambda: regrader.now.failure == "the disk is full")
        time.sleep(0.1)
        broken = False
        until(lambda: regrader.now == GradingState())
        assert lines == ["grading: the disk is full"]


def test_if_another_process_grades_it_is_reported_and_checked_again_on_request(tmp_path: Path) -> None:
    tries: list[float] = []
    free = False

    def work(root: Path, receive: child.Receive, say: child.Say) -> None:
        tries.append(time.monotonic())
        if not free:
            say(Busy("process 7 is already grading this track"))
            return
        say(GradingEnded(""))
        wait_for_end(receive)

    with running(work, tmp_path, again=60) as (regrader, lines):
        until(lambda: regrader.now.busy != "")
        time.sleep(0.1)
        assert (len(tries), regrader.now.failure) == (1, "")
        free = True
        regrader.ask()
        until(lambda: regrader.now == GradingState())
        assert len(tries) == 2
        assert lines == ["process 7 is already grading this track"]


def test_an_unexpected_error_is_reported_and_retried(tmp_path: Path) -> None:
    tries = 0

    def make() -> child.Link:
        nonlocal tries
        tries += 1
        raise RuntimeError("no more processes")

    lines: list[str] = []
    with Regrader(tmp_path, log=lines.append, make=make, retry=0.01) as regrader:
        until(lambda: tries > 2)
        assert "RuntimeError: no more processes" in regrader.now.failure
    assert len(lines) == 1


def test_a_lost_process_is_a_failure_and_a_new_one_takes_over(tmp_path: Path) -> None:
    starts = 0

    def work(root: Path, receive: child.Receive, say: child.Say) -> None:
        nonlocal starts
        starts += 1
        if starts > 1:
            say(GradingEnded(""))
            wait_for_end(receive)

    with running(work, tmp_path, retry=0.2) as (regrader, _):
        until(lambda: regrader.now.failure == "the process that grades ended")
        until(lambda: regrader.now == GradingState())
        assert starts == 2


def test_grading_stops_after_the_current_batch_and_can_stop_before_starting(tmp_path: Path) -> None:
    ended = threading.Event()

    def work(root: Path, receive: child.Receive, say: child.Say) -> None:
        wait_for_end(receive)
        time.sleep(0.1)
        ended.set()

    with running(work, tmp_path):
        pass
    assert ended.is_set()


@pytest.mark.slow
def test_a_real_process_grades_changes_and_leaves_the_track_to_a_daemon(tmp_path: Path) -> None:
    root = graded_track(tmp_path / "track")
    lines: list[str] = []
    with TrackLock(root / ".trecexam" / "lock"), Regrader(root, log=lines.append, again=60) as regrader:
        until(lambda: "grades this track; the page shows its results" in regrader.now.busy)
    with Regrader(root, log=lines.append) as regrader:
        until(lambda: any("watching" in line for line in lines))
        with trecexam.open_track(root) as track:
            track.bank.retire_item("q1/0", who="Ann")
        regrader.ask()
        until(lambda: "q1/0" not in (root / "out" / "manifest.json").read_text() and _items(root) == 11)
        (root / "bank.questions.jsonl").write_text("{}\n")
        until(lambda: "bank.questions.jsonl:1" in regrader.now.failure)
    with TrackLock(root / ".trecexam" / "lock"):
        pass


def _items(root: Path) -> int:
    with trecexam.open_track(root) as track:
        return int(track.status()["items"])


def test_a_folder_without_a_track_is_a_one_line_failure(tmp_path: Path) -> None:
    with running(grade, tmp_path / "none", retry=60) as (regrader, _):
        until(lambda: "no such track folder" in regrader.now.failure)
