"""Messages on a track without runs, grades or official judgments are the same in all commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from trecexam.cli.main import run

Damage = Callable[[Path], object]
#: Commands that compare with official judgments or evaluate on them, whatever their input.
COMPARE = ("agreement TRACK", "verify missing TRACK", "verify spurious TRACK")
EVALUATE = ("simulate TRACK", "simulate TRACK --judgments", "leaderboard TRACK --official")
#: Commands that work without them and say so.
WITHOUT = ("verify grading TRACK", "verify grid TRACK", "holes TRACK")
ABSENT = "no official judgments: put qrels.txt here"


def qrels(text: str) -> Damage:
    return lambda root: (root / "qrels.txt").write_text(text)


def error_output(capsys: pytest.CaptureFixture[str], command: str, root: Path, status: int) -> str:
    """What is printed to stderr; an error is one line, with nothing on stdout."""
    capsys.readouterr()
    assert run([str(root) if word == "TRACK" else word for word in command.split()]) == status
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    assert status == 0 or (printed.out, printed.err.count("\n")) == ("", 1)
    return printed.err


@pytest.mark.parametrize(
    ("damage", "refuse", "reason"),
    [
        (lambda root: (root / "qrels.txt").unlink(), COMPARE + EVALUATE, ABSENT),
        (
            qrels("q1 0 q1-d00 one\n"),
            COMPARE + EVALUATE,
            "qrels.txt:1: the official judgments were rejected",
        ),
        (
            qrels("x9 0 q1-d00 1\n"),
            COMPARE,
            "none of its 1 query ('x9') is among the track's ('q1', 'q2' and 1 more)",
        ),
        (qrels("q1 0 msmarco_1 1\n"), COMPARE, "are document ids written in another form?"),
    ],
)
def test_unusable_official_judgments_are_reported(
    graded: Path, capsys: pytest.CaptureFixture[str], damage: Damage, refuse: tuple[str, ...], reason: str
) -> None:
    damage(graded)
    for command in refuse:
        assert reason in error_output(capsys, command, graded, 2)
    for command in WITHOUT:
        told = error_output(capsys, command, graded, 0)
        if command.startswith("holes") or reason is not ABSENT:
            assert reason in told
        else:
            assert "judgment" not in told
