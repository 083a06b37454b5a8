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
    assert len(measures) == (3 if width >= 80 else 1) + (kind in ("one", "hundred"))
    errors = r" ±\d\.\d{3}" if "±" in notes else ""
    assert all(len(re.findall(rf"\d\.\d{{3}}{errors}", row)) == len(measures) for row in rows)
    assert rows[0].split()[0] == "1"
    assert len({row[4 : row.index("0.")].strip() for row in rows}) == len(rows)
    assert "left out: " in notes
    assert bool(errors) or "± standard error" in notes
    assert MEASURES[len(measures)] in notes.replace(" ", "")
    assert "--wide" in notes


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize(
    "command",
    [
        ("correlate",),
        ("correlate", "--per-query"),
        ("agreement",),
        ("compare",),
        ("correlate", "--thresholds"),
        ("holes",),
        ("holes", "--by", "query"),
        ("simulate",),
        ("simulate", "--judgments", "--repeats", "2"),
    ],
    ids=" ".join,
)
@pytest.mark.filterwarnings("ignore:An input array is constant")
def test_other_tables_fit_the_terminal_width(
    command: tuple[str, ...], width: int, tracks: dict[str, Path], run_on_terminal: Shown
) -> None:
    name, *options = command
    options = [str(tracks["alike"]), *options]
    lines = [STYLE.sub("", line) for line in run_on_terminal(name, *options, width=width)]
    assert len(lines) > 1
    assert max(map(wcswidth, lines)) <= width


def test_wide_shows_all_measures_and_full_names(tracks: dict[str, Path], run_on_terminal: Shown) -> None:
    lines = run_on_terminal("leaderboard", tracks["alike"], "--wide", width=40)
    text = STYLE.sub("", "\n".join(lines))
    assert score_columns(text.split())[:7] == ["rank", *MEASURES]
    assert all(name in text for name in RUNS["alike"])
    assert "left out" not in text


def test_runs_with_the_same_mean_share_a_rank(tmp_path: Path, run_on_terminal: Shown) -> None:
    track = graded(tmp_path / "t", ["a", "b", "c"])
    (track / "runs" / "b.run").write_text((track / "runs" / "a.run").read_text())
    rows = [line.split() for line in run_on_terminal("leaderboard", track)[1:4]]
    rank = {row[1]: row[0] for row in rows}
    assert rank["a"] == rank["b"]
    assert set(rank.values()) in ({"1", "2"}, {"1", "3"})


def test_holes_on_a_terminal_shows_sums_per_run_and_queries_on_request(
    tracks: dict[str, Path], run_on_terminal: Shown
) -> None:
    lines = [STYLE.sub("", line) for line in run_on_terminal("holes", tracks["hundred"])]
    assert lines[0] == "sums over all queries"
    assert lines[1].split() == ["run", "depth", "retrieved", "unjudged", "ungraded", "Judged@8"]
    assert len(lines) == 102
    by_query = [
        STYLE.sub("", line).split() for line in run_on_terminal("holes", tracks["hundred"], "--by", "query")
    ]
    assert by_query[0][:2] == ["run", "query_id"]
    assert len(by_query) == 1 + 100 * 4


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_nothing_is_coloured_when_colour_is_disabled(
    name: str, value: str, tracks: dict[str, Path], run_on_terminal: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    coloured = run_on_terminal("leaderboard", tracks["one"])
    assert STYLE.findall(coloured[0]) == ["\x1b[1m", "\x1b[0m"]
    monkeypatch.setenv(name, value)
    plain = run_on_terminal("leaderboard", tracks["one"])
    assert "\x1b" not in "".join(plain)
    assert plain == [STYLE.sub("", line) for line in coloured]


def test_a_terminal_without_ellipsis_shows_an_escape(tracks: dict[str, Path], run_on_terminal: Shown) -> None:
    lines = run_on_terminal("leaderboard", tracks["alike"], width=40, encoding="ascii")
    assert r"\u2026" in split_heading([STYLE.sub("", line) for line in lines])[1][0]
