"""Replies that `max_new_tokens` ends: unparsed with the remedy, and asked again with more tokens."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from scripted_server import Exchange, serving

import trecexam
from trecexam.cli.main import run

MakeTrack = Callable[..., Path]


def set_limit(root: Path, limit: int) -> None:
    path = root / "trecexam.toml"
    lines = [line for line in path.read_text().splitlines() if "max_new_tokens" not in line]
    lines.insert(lines.index("[grader]") + 1, f"max_new_tokens = {limit}")
    path.write_text("\n".join(lines) + "\n")


def thinking(exchange: Exchange) -> None:
    """Thinks about passage 3 for 1,000 tokens, and answers the others at once."""
    if "passage 3" not in exchange.prompt.lower():
        exchange.say("4", finish="length" if "passage 4" in exchange.prompt.lower() else "stop")
    elif exchange.body["max_tokens"] < 1000:
        exchange.say("<think>\n3\nbecause", finish="length")
    else:
        exchange.say("<think>\n3?</think>5")


def test_raising_the_limit_asks_again_for_cut_cells_alone(
    track: MakeTrack, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(thinking) as server:
        root = track(server.url, max_new_tokens=100)
        run(["watch", str(root), "--once"])
        first = len(server.bodies)
        with trecexam.open_track(root) as opened:
            counts = opened.grading.counts()
            n_cut = counts.unparsed
            assert n_cut > 0
        capsys.readouterr()
        run(["status", str(root)])
        assert "ends early: raise `max_new_tokens`" in "".join(capsys.readouterr())
        set_limit(root, 50)
        run(["watch", str(root), "--once"])
        assert len(server.bodies) == first
        set_limit(root, 2000)
        run(["watch", str(root), "--once"])
        assert len(server.bodies) == first + n_cut
        with trecexam.open_track(root) as opened:
            assert opened.grading.counts().unparsed == 0
        run(["watch", str(root), "--once"])
        assert len(server.bodies) == first + n_cut


def test_kept_answers_are_read_anew_and_not_asked_for_again(track: MakeTrack) -> None:
    with serving(lambda exchange: exchange.say("Final answer: 4")) as server:
        root = track(server.url)
        run(["watch", str(root), "--once"])
        asked = len(server.bodies)
        # An older reader could not read them.
        with closing(sqlite3.connect(root / ".trecexam" / "grades.sqlite")) as store:
            store.execute("UPDATE grade SET rating = NULL, status = 'unparsed'")
            store.commit()
        run(["watch", str(root), "--once"])
        assert len(server.bodies) == asked
    with trecexam.open_track(root) as opened:
        assert opened.grading.counts().unparsed == 0
