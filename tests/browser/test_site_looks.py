"""How the docs look on a phone and a screen, light and dark. TRECEXAM_SHOTS=FOLDER keeps pictures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("mkdocstrings_handlers.python", reason="the extra `docs` is not installed")

from readable import FAINT
from site_build import build_site, site_served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow
SHOTS = os.environ.get("TRECEXAM_SHOTS")
#: One of each kind: with a picture, with wide tables, with signatures.
PAGES = (
    "",
    "examples/runs-to-leaderboard/",
    "examples/judging/",
    "examples/ragval/",
    "examples/glossary/",
    "examples/formats/",
    "examples/reference/commands/",
    "examples/reference/settings/",
    "examples/design/001-the-house/",
    "reference/",
)
#: What material hides, or draws half transparent.
OF_MATERIAL = ("md-search-result__meta", "md-nav__title")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(tmp_path_factory.mktemp("site") / "site")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_of_the_docs_fit_and_can_be_read(site: Path, browser: Browser, width: int, scheme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    page, found = context.new_page(), {}
    with site_served(site) as address:
        for name in PAGES:
            page.goto(address + name)
            faint = [line for line in page.evaluate(FAINT) if not any(each in line for each in OF_MATERIAL)]
            if page.evaluate("document.scrollingElement.scrollWidth > innerWidth"):
                faint.append("it scrolls sideways")
            if faint:
                found[name] = faint
            if SHOTS:
                shot = f"docs-{name.strip('/').replace('/', '-') or 'start'}-{width}-{scheme}.png"
                page.screenshot(path=f"{SHOTS}/{shot}", full_page=True)
    context.close()
    assert found == {}
