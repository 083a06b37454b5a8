"""Fixtures that every test may use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import ROOT, SHARED, HashGrader, make_small_track

#: What takes longest begins first, so that one worker is not left alone with it at the end.
LONGEST = ("tests/graders/cluster", "tests/test_docs.py", "tests/faults", "tests/cli", "tests/graders")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Shares the files out to the processes of pytest-xdist, each whole; one Ray cluster at a time."""
    for item in items:
        file = item.path.relative_to(ROOT).as_posix()
        apart = file == "tests/test_docs.py"
        group = "ray" if item.get_closest_marker("ray") else item.name if apart else file
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    file = item.path.relative_to(ROOT).as_posix()
    return next((turn for turn, place in enumerate(LONGEST) if file.startswith(place)), len(LONGEST))


@pytest.fixture
def small_track(tmp_path: Path) -> Path:
    return make_small_track(tmp_path / "track")


@pytest.fixture
def hash_grader() -> HashGrader:
    return HashGrader()


@pytest.fixture(scope="session")
def dl19() -> Path:
    folder = SHARED / "dl19"
    if not folder.is_dir():
        pytest.skip("the folder ../shared/dl19 with TREC DL 2019 data is not here")
    return folder


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """A test that leaves a thread running fails."""
    before = set(threading.enumerate())
    yield
    left = [t for t in threading.enumerate() if t not in before and not t.daemon]
    for thread in left:
        thread.join(2)
    assert not [t for t in left if t.is_alive()]
