"""A track's page: without a server, or served in a thread."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

from starlette.testclient import TestClient
from worker_thread import live_track

from trecexam.extensions.page.app import create_app
from trecexam.extensions.page.live import LiveTrack


@contextmanager
def client_of(root: Path, **options: object) -> Iterator[TestClient]:
    """A client of the page of a track, which is already read."""
    with live_track(root) as live:
        assert live.wait_for(lambda one: one.view is not None or bool(one.trouble))
        app = create_app(live, **options)  # type: ignore[arg-type]
        with TestClient(app, base_url="http://127.0.0.1", follow_redirects=False) as client:
            yield client


def csrf_of(client: TestClient) -> str:
    """The token that the page's forms carry."""
    return str(client.get("/state").json()["csrf"])


def rows_of(page: str) -> list[list[str]]:
    """The rows of the page's table: the words of each cell."""
    body = page.partition('id="table"')[2].partition("<tbody>")[2].partition("</tbody>")[0]
    rows = (re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL) for row in body.split("<tr>")[1:])
    return [[" ".join(unescape(re.sub(r"<[^>]*>", " ", cell)).split()) for cell in row] for row in rows]


class Served(NamedTuple):
    """A running page."""

    url: str
    live: LiveTrack
    root: Path


@contextmanager
def serving(root: Path, *, apart: bool = False, **options: Any) -> Iterator[Served]:
    """Serves a track's page on a free port while the block runs; no thread is left behind.

    Args:
        options: of `create_app`.
    """
    from trecexam.extensions.page.running import Server, bound

    with LiveTrack(root) if apart else live_track(root) as live, bound("127.0.0.1", 0) as socket:
        server = Server(live, socket, **options)
        thread = threading.Thread(target=server.run, name="page")
        thread.start()
        try:
            end = time.monotonic() + 60
            while not server.started and thread.is_alive() and time.monotonic() < end:
                time.sleep(0.01)
            assert server.started
            live.wait_for(lambda one: one.view is not None or bool(one.trouble))
            yield Served(f"http://127.0.0.1:{socket.getsockname()[1]}", live, root)
        finally:
            server.stop()
            thread.join(10)
