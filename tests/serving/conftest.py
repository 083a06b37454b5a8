"""The page of a small track: without a server (`client`), and served for real on a free port (`served`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra `serve` is not installed")

from served import Served, graded_track, serving
from starlette.testclient import TestClient

from trecexam.serving.app import create_app
from trecexam.serving.live import LiveTrack


@pytest.fixture
def track(tmp_path: Path) -> Path:
    """A graded track with official judgments: 3 queries, 3 runs."""
    return graded_track(tmp_path / "track")


@pytest.fixture
def open_client() -> Iterator[Callable[..., TestClient]]:
    """(track, **options of create_app) -> a client of its page, the track read already."""
    with ExitStack() as stack:

        def opened(root: Path, **options: object) -> TestClient:
            live = stack.enter_context(LiveTrack(root, apart=False))
            assert live.wait_for(lambda one: one.view is not None or bool(one.trouble))
            app = create_app(live, **options)  # type: ignore[arg-type]
            return stack.enter_context(TestClient(app, base_url="http://127.0.0.1", follow_redirects=False))

        yield opened


@pytest.fixture
def client(track: Path, open_client: Callable[..., TestClient]) -> TestClient:
    """A client of the page of `track`. `client.app.state.live` is its LiveTrack."""
    return open_client(track)


@pytest.fixture
def post(client: TestClient) -> Callable[..., object]:
    """(path, **fields) -> the answer to a form of ours with these fields."""

    def posted(path: str, **fields: str) -> object:
        return client.post(
            path, data={"csrf": csrf_of(client), **fields}, headers={"sec-fetch-site": "same-origin"}
        )

    return posted


def csrf_of(client: TestClient) -> str:
    """The token that the page's forms carry."""
    page = client.get("/state").json()
    return str(page["csrf"])


@pytest.fixture
def served(track: Path) -> Iterator[Served]:
    """The page of `track` on a free port of 127.0.0.1; `served.url` is its address."""
    with serving(track) as running:
        yield running
