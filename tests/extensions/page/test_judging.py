from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from support import graded_track, until
from worker_thread import Thread

import trecexam
from trecexam.extensions.page import child
from trecexam.extensions.page.judging import (
    Began,
    JudgeNext,
    JudgmentQueue,
    Key,
    LookFailed,
    LookOver,
    LookRequest,
    QueryLooked,
    QueuedJudgment,
    Wish,
    look,
)


def row(query_id: str, doc_id: str, change: float) -> QueuedJudgment:
    return QueuedJudgment(Key(query_id, doc_id, ""), (-change,), 2)


class Scripted:
    """A search whose queries are found when the test says so."""

    def __init__(self) -> None:
        self.asked: list[LookRequest] = []
        self.steps = threading.Semaphore(0)
        self.looks = 0

    def __call__(self, root: Path, receive: child.Receive, say: child.Say) -> None:
        asked = receive(60)
        self.asked.append(asked)
        self.looks += 1
        say(Began("passage", "P@20", ("q1", "q2")))
        for query_id, change in (("q1", 0.1 * self.looks), ("q2", 0.15)):
            while not self.steps.acquire(timeout=0.02):
                try:
                    receive(0.0)
                except EOFError:
                    return
            say(QueryLooked(query_id, (row(query_id, "d1", change), row(query_id, "d2", change / 2))))
        say(LookOver())

    __name__ = "scripted"


@pytest.fixture
def scripted() -> Scripted:
    return Scripted()


def test_a_list_is_available_as_soon_as_one_query_was_searched(tmp_path: Path, scripted: Scripted) -> None:
    with JudgeNext(tmp_path, make=lambda: Thread(scripted, tmp_path), rest=0) as judging:
        wanted = judging.of(Wish())
        assert wanted.want(1) == JudgmentQueue()
        scripted.steps.release()
        queue = wanted.wait(10)
        assert [one.key.doc_id for one in queue.best] == ["d1", "d2"]
        assert (queue.looked, queue.total, queue.measure, queue.level) == (1, 2, "P@20", "passage")
        scripted.steps.release()
        until(lambda: wanted.want(1).total == 0)
        queue = wanted.want(1)
        assert [one.key[:2] for one in queue.best] == [("q2", "d1"), ("q1", "d1"), ("q2", "d2"), ("q1", "d2")]
        time.sleep(0.05)
        assert scripted.looks == 1  # nothing changed


def test_the_last_list_stays_while_the_new_one_is_computed(tmp_path: Path, scripted: Scripted) -> None:
    with JudgeNext(tmp_path, make=lambda: Thread(scripted, tmp_path), rest=0) as judging:
        wanted = judging.of(Wish("P@20"))
        wanted.want(1)
        scripted.steps.release(2)
        until(lambda: len(wanted.want(1).as_of) == 2 and not wanted.want(1).total)
        assert wanted.want(2).stale(2) == 2
        until(lambda: scripted.looks == 2)
        assert len(wanted.want(2).best) == 4
        scripted.steps.release()
        until(lambda: wanted.want(2).stale(2) == 1)
        assert wanted.want(2).best[0] == row("q1", "d1", 0.2)
        scripted.steps.release()
        until(lambda: wanted.want(2).stale(2) == 0)
        assert scripted.asked[0] == LookRequest(Wish("P@20"), ())
        assert sorted(scripted.asked[1].known) == ["q1", "q2"]


def test_a_failed_search_is_reported_and_retried_when_the_track_changes(tmp_path: Path) -> None:
    looks = 0

    def failing(root: Path, receive: child.Receive, say: child.Say) -> None:
        nonlocal looks
        looks += 1
        if looks == 2:
            return  # as if killed
        say(LookFailed("only one run"))

    with JudgeNext(tmp_path, make=lambda: Thread(failing, tmp_path), rest=0) as judging:
        wanted = judging.of(Wish())
        wanted.want(1)
        assert wanted.wait(10).failure == "only one run"
        time.sleep(0.05)
        assert looks == 1
        wanted.want(2)
        until(lambda: wanted.want(2).failure == "the process that looks for judgments ended")


@pytest.mark.parametrize("wish", [Wish(), Wish("nDCG@5")])
def test_a_real_search_finds_the_same_as_judge_next(tmp_path: Path, wish: Wish) -> None:
    root = graded_track(tmp_path / "track")
    (root / "qrels.txt").unlink()
    with trecexam.open_track(root) as track:
        found = track.judge_next(wish.measure or None)
    assert found.rows
    with JudgeNext(root, make=lambda: Thread(look, root)) as judging:
        wanted = judging.of(wish)
        wanted.want(1)
        until(lambda: bool(wanted.wait(10).as_of) and not wanted.want(1).total)
        queue = wanted.want(1)
    assert [one.key for one in queue.best] == [Key(one.query_id, one.doc_id, "") for one in found.rows]
    assert (queue.measure, queue.level) == (found.measure, found.level)


def test_a_separate_process_searches_too_and_ends_with_the_page(tmp_path: Path) -> None:
    root = graded_track(tmp_path / "track")
    (root / "qrels.txt").unlink()
    with JudgeNext(root) as judging:
        wanted = judging.of(Wish())
        wanted.want(1)
        assert wanted.wait(60).best
    with JudgeNext(root) as judging:
        # Killed in the middle.
        judging.of(Wish()).want(1)
        time.sleep(0.2)
