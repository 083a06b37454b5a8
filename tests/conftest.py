"""Fixtures that every test may use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import SHARED, HashGrader, make_small_track

from trecexam.reports.plots.model import Drawing


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
def quick_plots(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test's updates make the whole report, but only those with the mark `plots` have it drawn."""
    if request.node.get_closest_marker("plots") is None:
        monkeypatch.setattr(
            "trecexam.reports.plots.canvas._drawn",
            lambda plot: Drawing(f'<svg id="{plot.name}"></svg>'.encode(), b"not drawn in this test"),
        )


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """A test that leaves a thread running fails."""
    before = set(threading.enumerate())
    yield
    left = [t for t in threading.enumerate() if t not in before and not t.daemon]
    for thread in left:
        thread.join(2)
    assert not [t for t in left if t.is_alive()]
