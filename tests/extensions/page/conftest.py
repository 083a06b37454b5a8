"""The page of a small track: without a server (`client`), and served for real on a free port (`served`)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra `serve` is not installed")

from served import Served, client_of, csrf_of, serving
from starlette.testclient import TestClient


@pytest.fixture(scope="session")
def graded(graded_once: Path) -> Path:
    """A graded track; read-only."""
    return graded_once


@pytest.fixture
def track(graded: Path, tmp_path: Path) -> Path:
    """A graded track with official judgments: 3 queries, 3 runs."""
    return Path(shutil.copytree(graded, tmp_path / "track"))


@pytest.fixture
def open_client() -> Iterator[Callable[..., TestClient]]:
    """(track, **options of create_app) -> a client of its page, with the track already read."""
    with ExitStack() as stack:
        yield lambda root, **options: stack.enter_context(client_of(root, **options))


@pytest.fixture
def client(track: Path) -> Iterator[TestClient]:
    """A client of the page of `track`. `client.app.state.live` is its LiveTrack."""
    with client_of(track) as opened:
        yield opened


@pytest.fixture
def post(client: TestClient) -> Callable[..., object]:
    """(path, **fields) -> the answer to a form of ours with these fields."""

    def posted(path: str, **fields: str) -> object:
        form = {"csrf": csrf_of(client), **fields}
        return client.post(path, data=form, headers={"sec-fetch-site": "same-origin"})

    return posted


@pytest.fixture
def served(track: Path) -> Iterator[Served]:
    """The page of `track` on a free port of 127.0.0.1; `served.url` is its address."""
    with serving(track) as running:
        yield running
