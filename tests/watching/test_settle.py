from __future__ import annotations

from pathlib import Path

from trecexam.files.stamps import Stamp
from trecexam.watching.settle import Settler

A = Path("runs/a.run")


def at(mtime: float, size: int = 1) -> Stamp:
    return Stamp(size, int(mtime * 1e9), int(mtime * 1e9), 1)


def test_a_file_is_read_once_it_is_unchanged_for_the_settle_time() -> None:
    settler = Settler(2.0)
    assert settler.unsettled({A: at(100)}, (), now=0, wall=100) == {A: 2.0}
    assert settler.unsettled({A: at(100)}, (), now=1.5, wall=101.5) == {A: 0.5}
    assert settler.unsettled({A: at(100)}, (), now=2.0, wall=102) == {}


def test_a_growing_file_restarts_the_settle_time() -> None:
    settler = Settler(2.0)
    settler.unsettled({A: at(100)}, (), now=0, wall=100)
    assert settler.unsettled({A: at(101, size=2)}, (), now=1, wall=101) == {A: 2.0}
    assert settler.unsettled({A: at(101, size=2)}, (), now=2.5, wall=102.5) == {A: 0.5}


def test_a_closed_or_moved_in_file_is_read_at_once() -> None:
    settler = Settler(60.0)
    assert settler.unsettled({A: at(100)}, {A}, now=0, wall=100) == {}
    assert settler.unsettled({A: at(100)}, (), now=1, wall=101) == {}


def test_a_changed_file_waits_again() -> None:
    settler = Settler(2.0)
    settler.unsettled({A: at(100)}, {A}, now=0, wall=100)
    assert settler.unsettled({A: at(110, size=9)}, (), now=10, wall=110) == {A: 2.0}


def test_an_old_file_is_read_at_the_first_check() -> None:
    assert Settler(2.0).unsettled({A: at(50)}, (), now=0, wall=100) == {}


def test_a_file_time_in_the_future_waits_at_most_the_settle_time() -> None:
    assert Settler(2.0).unsettled({A: at(5000)}, (), now=0, wall=100) == {A: 2.0}


def test_a_settle_time_of_zero_reads_everything_at_once() -> None:
    assert Settler(0.0).unsettled({A: at(100)}, (), now=0, wall=100) == {}


def test_a_removed_file_is_forgotten() -> None:
    settler = Settler(2.0)
    settler.unsettled({A: at(100)}, (), now=0, wall=100)
    settler.unsettled({}, (), now=1, wall=101)
    assert settler.unsettled({A: at(102)}, (), now=2, wall=102) == {A: 2.0}
