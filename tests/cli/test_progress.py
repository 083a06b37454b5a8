"""Progress of long work: bars on a terminal, log lines elsewhere, and the time left."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest

from trecexam.cli import bars
from trecexam.grades.grading import Progress


class Clock:
    """A clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(bars, "clock", made)
    return made


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[str]]:
    """The log lines since the last call, without the time of day."""
    return lambda: [line.partition("] ")[2] for line in capsys.readouterr().err.splitlines()]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_time_in_which_a_model_is_loaded_is_no_part_of_the_pace(
    clock: Clock, lines: Callable[[], list[str]]
) -> None:
    with bars.progress("asking", "prompts") as show:
        show(Progress(0, 100))
        clock.now += 500
        show(Progress(10, 100))
        clock.now += 10
        show(Progress(20, 100))
        clock.now += 10
        show(Progress(30, 100))
    first, second, third = lines()
    assert first == "asking: 10 of 100 prompts"
    assert second == "asking: 20 of 100 prompts, about 80 s left"
    assert third == "asking: 30 of 100 prompts, about 70 s left"


def test_hours_between_two_updates_of_a_daemon_are_no_part_of_the_pace(
    clock: Clock, lines: Callable[[], list[str]]
) -> None:
    with bars.progress() as show:
        for cells in (2, 500, 700):
            for graded in (2, 400):
                if graded <= cells:
                    clock.now += 20
                    show(Progress(graded, cells))
            clock.now += 7200
    assert lines() == [
        "grading: 2 of 2 cells",
        "grading: 2 of 500 cells",
        "grading: 400 of 500 cells, about 5 s left",
        "grading: 2 of 700 cells",
        "grading: 400 of 700 cells, about 15 s left",
    ]


def test_a_terminal_gets_a_bar_for_each_stage_with_the_time_left(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with bars.progress("learning") as show:
        for what, of in (("texts", 40), ("steps", 30)):
            for done in (0, of // 4, of // 2, of):
                show(Progress(done, of, what=what))
                clock.now += 100
        show(Progress(1, 9, "support"))
        shown = sys.stderr.getvalue()
    texts, steps, support = shown.rstrip().split("\n")
    assert "learning" in texts
    assert "20/40  texts, about 3 minutes left" in texts
    assert texts.replace("\x1b[?25h", "").rstrip().endswith("40/40  texts")
    assert "15/30  steps, about 3 minutes left" in steps
    assert support.lstrip("\r").startswith(("learning (support)", "\x1b"))
    assert "1/9  cells" in support
