"""Key presses on a completely loaded page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page


def press(page: Page, key: str) -> None:
    """Presses a key once the scripts of the page run: its text appears earlier."""
    page.wait_for_load_state()
    page.keyboard.press(key)
