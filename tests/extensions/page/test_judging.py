from __future__ import annotations

import time
from pathlib import Path

import pytest
from support import graded_track, until
from worker_thread import Thread

import trecexam
from trecexam.extensions.page.judging import (
    JudgeNext,
    Key,
    Wish,
    look,
)


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
