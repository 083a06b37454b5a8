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


def test_a_line_in_ten_seconds_has_the_time_left_by_the_pace_so_far(
    clock: Clock, lines: Callable[[], list[str]]
) -> None:
    with bars.progress() as show:
        show(Progress(0, 1200))
        for second in range(1, 31):
            clock.now += 1
            show(Progress(4 * second, 1200))
    assert lines() == [
        "grading: 40 of 1,200 cells, about 5 minutes left",
        "grading: 80 of 1,200 cells, about 5 minutes left",
        "grading: 120 of 1,200 cells, about 4 minutes left",
    ]


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


def test_no_time_is_named_before_a_pace_is_known_and_none_when_all_is_done(
    clock: Clock, lines: Callable[[], list[str]]
) -> None:
    with bars.progress() as show:
        clock.now += 60
        show(Progress(5, 10))
        clock.now += 60
        show(Progress(10, 10))
    assert lines() == ["grading: 5 of 10 cells", "grading: 10 of 10 cells"]


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


def test_a_model_that_is_loaded_is_named_on_a_terminal_until_the_work_starts(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, lines: Callable[[], list[str]]
) -> None:
    with bars.progress() as show:
        clock.now += 60
        show(Progress(0, 40, loading="minilm"))
    assert lines() == []
    monkeypatch.setattr(sys, "stderr", Terminal())
    with bars.progress() as show:
        show(Progress(0, 40, loading="minilm"))
        assert sys.stderr.getvalue() == "\rloading minilm ..."
        show(Progress(20, 40))
        assert sys.stderr.getvalue().startswith("\rloading minilm ...\r\x1b[K")
        assert sys.stderr.getvalue().count("loading") == 1


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (119, "119 s"), (150, "2 minutes"), (7199, "120 minutes"), (9000, "2 hours")],
)
def test_a_duration_is_as_exact_as_an_estimate(seconds: float, words: str) -> None:
    assert bars.duration(seconds) == words
