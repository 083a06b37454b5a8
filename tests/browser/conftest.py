"""A headless Chromium: Debian's, driven by playwright."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/browser/" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """Same as for all tests, except that playwright's event loop lives as long as the browser."""
    before = set(threading.enumerate())
    yield
    ours = [t for t in threading.enumerate() if t not in before and not t.daemon and "asyncio_" not in t.name]
    for thread in ours:
        thread.join(2)
    assert not [t for t in ours if t.is_alive()]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        why = "no chromium here: apt-get install chromium"
        # On CI nobody reads why a test was skipped.
        pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A separate desktop window without cookies of other tests."""
    made = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
    made.set_default_timeout(60_000)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A tab; a test fails on any error that its scripts or the browser's console report."""
    opened = context.new_page()
    trouble: list[str] = []
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on("console", lambda said: trouble.append(said.text) if said.type == "error" else None)
    yield opened
    assert not trouble, trouble
