"""Output and colour of commands on a pseudo-terminal of a given width."""

from __future__ import annotations

import os
import pty
import re
import sys
import termios
import threading
import tty
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from headings import score_columns, split_heading
from support import QUIET, make_small_track, record_grades, write_run
from wcwidth import wcswidth

import trecexam
from trecexam.cli.main import run

Shown = Callable[..., list[str]]
STYLE = re.compile(r"\x1b\[[0-9;]*m")
MEASURES = ("P(rel=4)@5", "nDCG@5", "Cover(rel=4)@5", "AP(rel=4)", "RR(rel=4)", "nCover(rel=4)@5")


@pytest.fixture
def run_on_terminal(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """Runs a command with a terminal as its standard output, and returns the lines printed there."""
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    def shown(*arguments: str | Path, width: int = 80, encoding: str = "utf-8") -> list[str]:
        leader, follower = pty.openpty()
        tty.setraw(follower)
        termios.tcsetwinsize(follower, (24, width))
        received: list[bytes] = []

        def read() -> None:
            with suppress(OSError):
                while chunk := os.read(leader, 65536):
                    received.append(chunk)

        reader = threading.Thread(target=read)
        reader.start()
        with monkeypatch.context() as patch, os.fdopen(follower, "w", encoding=encoding) as terminal:
            patch.setattr(sys, "stdout", terminal)
            patch.setattr(sys, "__stdout__", terminal)
            assert run([*map(str, arguments)]) == 0
        reader.join(30)
        os.close(leader)
        return b"".join(received).decode(encoding).splitlines()

    return shown


def graded(root: Path, names: list[str]) -> Path:
    """A graded track with only these runs."""
    make_small_track(root, config=f"{QUIET}[scores]\nmeasures = {list(MEASURES)}\n")
    for path in (root / "runs").iterdir():
        path.unlink()
    for n, name in enumerate(names):
        docs = {q: [f"{q}-d{(d * 5 + n) % 12:02}" for d in range(12 - n % 5)] for q in ("q1", "q2", "q3")}
        write_run(root / "runs" / f"{name}.run", docs)
    record_grades(root)
    with (root / "trecexam.toml").open("a") as settings:
        settings.write('[grader]\nname = "recorded"\nrecorded = "grades.jsonl"\n')
    with trecexam.open_track(root) as track:
        track.grading.grade()
    return root


RUNS = {
    "one": ["only"],
    "hundred": [f"run{n}" for n in range(100)],
    "alike": [f"{'bm25-' * 12}{n:02}{'-rerank' * 12}" for n in range(12)],
    "wide": [f"検索エンジン{n}号機の長い名前をもつ実行結果" for n in range(5)],
}


@pytest.fixture(scope="module")
def tracks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("terminal")
    return {kind: graded(folder / kind, names) for kind, names in RUNS.items()}


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("kind", RUNS)
def test_a_leaderboard_fits_the_terminal_width(
    kind: str, width: int, tracks: dict[str, Path], run_on_terminal: Shown
) -> None:
    lines = [STYLE.sub("", line) for line in run_on_terminal("leaderboard", tracks[kind], width=width)]
    names, rest = split_heading(lines)
    rank, *measures = score_columns(names)
    rows, notes = rest[: len(RUNS[kind])], " ".join(rest[len(RUNS[kind]) :])
    assert max(map(wcswidth, lines)) <= width
    assert (rank, names[1]) == ("rank", "run")
    assert list(MEASURES[: len(measures)]) == measures
    assert len(measures) >= (3 if width >= 80 else 1)
    errors = r" ±\d\.\d{3}" if "±" in notes else ""
    assert all(len(re.findall(rf"\d\.\d{{3}}{errors}", row)) == len(measures) for row in rows)
    assert rows[0].split()[0] == "1"
    assert len({row[4 : row.index("0.")].strip() for row in rows}) == len(rows)
    assert "left out: " in notes
    assert bool(errors) or "± standard error" in notes
    assert MEASURES[len(measures)] in notes.replace(" ", "")
    assert "--wide" in notes


def test_runs_with_the_same_mean_share_a_rank(tmp_path: Path, run_on_terminal: Shown) -> None:
    track = graded(tmp_path / "t", ["a", "b", "c"])
    (track / "runs" / "b.run").write_text((track / "runs" / "a.run").read_text())
    lines = [line.split() for line in run_on_terminal("leaderboard", track)]
    rows = [words for words in lines if words[:1] and words[0].isdigit()]
    rank = {row[1]: row[0] for row in rows}
    assert rank["a"] == rank["b"]
    assert set(rank.values()) in ({"1", "2"}, {"1", "3"})
