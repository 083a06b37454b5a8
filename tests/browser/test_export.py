"""A copy of the page in a real Chromium: from a web server below a path, and from the disk."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("starlette", reason="the extra `serve` is not installed")

from support import graded_track

from trecexam.extensions.page.export.exporting import export

if TYPE_CHECKING:
    from playwright.sync_api import Page


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    track = graded_track(tmp_path_factory.mktemp("export") / "track", queries=2, docs=6)
    folder = tmp_path_factory.mktemp("web") / "nuggets" / "trec"
    export(track, folder)
    return folder


@pytest.fixture(params=["http", "file"])
def start(request: pytest.FixtureRequest, copy: Path) -> Iterator[str]:
    """The start page of the copy."""
    if request.param == "file":
        yield (copy / "index.html").as_uri()
        return
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(copy.parents[1]))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/nuggets/trec/"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_links_lead_from_the_leaderboard_to_a_passage(start: str, page: Page, scheme: str) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(start)
    for name in ("run1", "q1", "q1-d05"):
        # Until everything is loaded, including the style sheet.
        with page.expect_navigation():
            page.get_by_role("link", name=name, exact=True).first.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("heading", name="Passage q1-d05").wait_for()
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, background[4:-1].split(","))) < 300) == (scheme == "dark")
    assert page.locator("button, form, script").count() == 0
