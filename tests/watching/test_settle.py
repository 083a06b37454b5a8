from __future__ import annotations

from pathlib import Path

import pytest

from trecexam.files.stamps import Stamp
from trecexam.watching.settle import Settler

A = Path("runs/a.run")


def at(mtime: float, size: int = 1) -> Stamp:
    return Stamp(size, int(mtime * 1e9), int(mtime * 1e9), 1)


def test_a_file_is_read_once_it_is_unchanged_for_the_settle_time() -> None:
    settler = Settler(2.0)
    assert settler.unsettled({A: at(100)}, (), now=0, wall=100) == {A: 2.0}
    # A growing file restarts the settle time.
    assert settler.unsettled({A: at(101, size=2)}, (), now=1, wall=101) == {A: 2.0}
    assert settler.unsettled({A: at(101, size=2)}, (), now=2.5, wall=102.5) == {A: 0.5}
    assert settler.unsettled({A: at(101, size=2)}, (), now=3.0, wall=103) == {}
    # A removed file is forgotten.
    settler.unsettled({}, (), now=4, wall=104)
    assert settler.unsettled({A: at(105)}, (), now=5, wall=105) == {A: 2.0}


def test_a_closed_or_moved_in_file_is_read_at_once_until_it_changes() -> None:
    settler = Settler(60.0)
    assert settler.unsettled({A: at(100)}, {A}, now=0, wall=100) == {}
    assert settler.unsettled({A: at(100)}, (), now=1, wall=101) == {}
    assert settler.unsettled({A: at(110, size=9)}, (), now=10, wall=110) == {A: 60.0}


@pytest.mark.parametrize(
    ("seconds", "mtime", "left"),
    [
        (2.0, 50, {}),
        # A file time in the future waits at most the settle time.
        (2.0, 5000, {A: 2.0}),
        (0.0, 100, {}),
    ],
)
def test_the_time_of_a_file_counts_at_the_first_check(
    seconds: float, mtime: float, left: dict[Path, float]
) -> None:
    assert Settler(seconds).unsettled({A: at(mtime)}, (), now=0, wall=100) == left
