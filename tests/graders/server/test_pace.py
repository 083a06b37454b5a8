"""Estimated time of grading by a server, from the stored speed of earlier grading."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cited import make_cited_track
from scripted_server import Scripted, serving

import trecexam
from trecexam.cli.main import run
from trecexam.errors import TrecexamError
from trecexam.files.kept import recall, remember
from trecexam.graders.base import Estimate
from trecexam.line import grading, paces

MakeTrack = Callable[..., Path]
SAID = re.compile(
    r"^grading would take about (?P<time>\d+ \w+): the last grading \(\d{4}-\d\d-\d\d\) sent "
    r"(?P<requests>[\d,]+) requests? in (?P<seconds>[\d,]+) s$",
    re.MULTILINE,
)
FIRST_TELLS = "time of grading: known after a first grading of 20 requests"


@pytest.fixture(autouse=True)
def _clock_ticks_of_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, the clock advances by ten seconds per call."""
    ticks = itertools.count(0.0, 10.0)
    monkeypatch.setattr(grading, "time", SimpleNamespace(monotonic=lambda: next(ticks)))


def estimate(root: Path, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    """The output and messages of `watch --estimate --json`."""
    capsys.readouterr()
    assert run(["watch", str(root), "--estimate", "--json"]) == 0
    printed = capsys.readouterr()
    (value,) = json.loads(printed.out)
    return value, printed.err


def grown(root: Path) -> None:
    """Changes the text of each passage: all cells need grading again."""
    passages = root / "passages.jsonl"
    passages.write_text(passages.read_text().replace("passage", "newer passage"))


def graded(track: MakeTrack, server: Scripted, **settings: Any) -> tuple[Path, int]:
    """A track that was graded once and needs all cells graded again; and the number of cells."""
    root = track(server.url, **settings)
    with trecexam.open_track(root) as opened:
        cells = opened.grading.counts().missing
    assert run(["watch", str(root), "--once"]) == 0
    grown(root)
    return root, cells


def test_earlier_grading_tells_how_long_the_rest_takes(
    track: MakeTrack, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as server:
        root, cells = graded(track, server)
        asked = len(server.bodies)
        value, said = estimate(root, capsys)
        assert len(server.bodies) == asked
    (line,) = SAID.finditer(said)
    assert int(line["requests"]) == asked
    seconds = int(line["seconds"])
    assert seconds >= 10
    assert value["measured"] == cells
    assert [*value][-5:] == ["cost_at_most", "calls", "calls_at_most", "minutes", "measured"]
    assert value["minutes"] == round(value["cells"] * seconds / cells / 60, 2)


def test_before_a_first_grading_minutes_are_unknown_and_a_note_says_why(
    track: MakeTrack, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving() as server:
        value, said = estimate(track(server.url), capsys)
        assert server.bodies == []
    assert (value["minutes"], value["measured"]) == (None, None)
    assert said.splitlines()[0] == FIRST_TELLS


@pytest.mark.parametrize(("limit", "value"), [("FEWEST_REQUESTS", 37), ("SHORTEST", 1e6)])
def test_a_few_requests_and_a_short_grading_give_no_speed(
    track: MakeTrack, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, limit: str,
    value: float,
) -> None:  # fmt: skip
    monkeypatch.setattr(paces, limit, value)
    with serving() as server:
        root, cells = graded(track, server)
        assert cells == 36
        estimated, said = estimate(root, capsys)
    assert estimated["minutes"] is None
    assert "time of grading: known after a first grading" in said


def test_if_nothing_is_to_be_graded_no_time_is_shown(
    track: MakeTrack, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving() as server:
        root = track(server.url)
        assert run(["watch", str(root), "--once"]) == 0
        value, said = estimate(root, capsys)
    assert (value["cells"], value["minutes"]) == (0, None)
    assert "take" not in said


def test_with_a_damaged_or_missing_file_minutes_are_unknown(
    track: MakeTrack, capsys: pytest.CaptureFixture[str]
) -> None:
    pace = {"requests": 30, "cells": 30, "seconds": 4, "day": "2026-11-22"}
    with serving() as server:
        root, cells = graded(track, server)
        path = root / ".trecexam" / "paces.json"
        (digest,) = recall(path)
        remember(path, {digest: pace})
        assert estimate(root, capsys)[0]["minutes"] == round(cells * 4 / 30 / 60, 2)
        other = path.read_bytes().replace(b'"seconds": 4', b'"seconds": 5')
        for content in (b"", b"\xff{", b"[" * 200_000, json.dumps({digest: pace}).encode(), other, None):
            path.unlink() if content is None else path.write_bytes(content)
            value, said = estimate(root, capsys)
            assert value["minutes"] is None
            assert FIRST_TELLS in said
        path.write_bytes(b"\xff{")
        # The next grading measures it again.
        assert run(["watch", str(root), "--once"]) == 0
        assert [*recall(path)] == [digest]


def test_speeds_are_stored_per_grader_for_the_latest_graders(
    track: MakeTrack, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paces, "MOST_GRADERS", 2)
    with serving() as server:
        root, _ = graded(track, server)
        config = root / "trecexam.toml"
        settings = config.read_text()
        for model in ("small", "middle"):
            config.write_text(settings.replace('"tiny"', f'"{model}"'))
            assert estimate(root, capsys)[0]["minutes"] is None
            assert run(["watch", str(root), "--once"]) == 0
        grown(root)
        assert estimate(root, capsys)[0]["minutes"] > 0
        config.write_text(settings)
        assert estimate(root, capsys)[0]["minutes"] is None


def test_a_speed_that_cannot_be_stored_stops_no_grading(
    track: MakeTrack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise TrecexamError("cannot be written: no space left")

    monkeypatch.setattr(paces, "remember", full)
    with serving() as server:
        graded(track, server)


def test_support_uses_the_speed_of_its_own_grader(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paces, "FEWEST_REQUESTS", 2)
    with serving(
        lambda exchange: exchange.send(200, b'{"choices": [{"message": {"content": "full"}}]}')
    ) as server:
        root = make_cited_track(tmp_path / "cited", server.url)
        capsys.readouterr()
        assert run(["watch", str(root), "--estimate"]) == 0
        assert "known after a first grading" in capsys.readouterr().err
        run(["watch", str(root), "--once"])
        passages = root / "passages.jsonl"
        texts = [json.loads(line) for line in passages.read_text().splitlines()]
        passages.write_text("".join(json.dumps({**t, "text": t["text"] + " More."}) + "\n" for t in texts))
        capsys.readouterr()
        assert run(["watch", str(root), "--estimate"]) == 0
    assert len([*SAID.finditer(capsys.readouterr().err)]) == 1


def test_with_lists_of_items_the_speed_is_that_of_requests(tmp_path: Path) -> None:
    path, identity = tmp_path / "paces.json", {"model": "tiny"}
    paces.remember_pace(path, identity, requests=20, cells=200, seconds=50.0)
    by_calls = paces.paced_time(path, identity, Estimate(30, calls=10))
    by_cells = paces.paced_time(path, identity, Estimate(30))
    assert by_calls is not None
    assert by_cells is not None
    assert (by_calls.seconds, by_cells.seconds) == (25.0, 7.5)
