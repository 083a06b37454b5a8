"""Notes of a result are in all its forms: terminal, JSON, notebook, live page and report."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from served import client_of
from support import Terminal

import trecexam
from trecexam.cli.main import run

#: Which runs rank like the encoder is computed and tested elsewhere; here only the place of the note.
ENCODER = "passages much in the order of the grader's encoder, so scores are likely too high: run0, run1"
CAUTIONS = {
    "pool": "values of nDCG@5 depend on this pool of ",
    "thresholds": "ratings from 1 on count in P@5; this track's threshold is 4: P(rel=4)@5",
    "encoder": ENCODER,
}


def plain(page: str) -> str:
    """The text of a page."""
    return html.unescape(re.sub(r"<[^>]+>", "", page))


@pytest.fixture
def places(
    track: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], on_terminal: Terminal
) -> dict[str, str]:
    """The texts of the five places on a leaderboard with three notes."""
    with (track / "trecexam.toml").open("a") as settings:
        settings.write('[scores]\nmeasures = ["nDCG@5", "P@5"]\n')
    monkeypatch.setattr("trecexam.grades.diagnostics.encoder_cautions", lambda track: (ENCODER,))
    assert run(["watch", str(track), "--once"]) == 0
    capsys.readouterr()
    with on_terminal():
        assert run(["leaderboard", str(track)]) == 0
    terminal = capsys.readouterr()
    assert run(["leaderboard", str(track), "--json"]) == 0
    in_json = capsys.readouterr().out
    with trecexam.open_track(track) as opened:
        notebook = opened.leaderboard()._repr_html_()
    with client_of(track) as client:
        page = client.get("/").text
    return {
        "terminal": " ".join((terminal.out + terminal.err).split()),
        "json": "\n".join(json.loads(in_json)["notes"]),
        "notebook": plain(notebook),
        "page": plain(page),
        "report": plain((track / "out" / "report.html").read_text()),
    }


def test_the_page_folds_all_notes_after_the_third(track: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = tuple(f"line {n}" for n in range(9))
    monkeypatch.setattr("trecexam.grades.diagnostics.encoder_cautions", lambda track: lines)
    assert run(["watch", str(track), "--once"]) == 0
    with client_of(track) as client:
        shown, _, folded = client.get("/").text.partition("<details><summary>")
    assert shown.count('<p class="note">') == 4  # one of them is in the head, hidden
    assert re.match(r"\d+ more</summary>", folded)
    assert "line 8" in folded


def test_each_note_is_in_all_five_places(places: dict[str, str]) -> None:
    missing = [
        (what, where) for what, line in CAUTIONS.items() for where, said in places.items() if line not in said
    ]
    assert not missing
