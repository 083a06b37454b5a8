"""Makes the README's pictures of the demo with Chromium: `python tests/helpers/pictures.py`."""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright
from served import serving

from trecexam.cli.main import run
from trecexam.extensions.page.urls import Urls

IMAGES = Path(__file__).resolve().parents[2] / "examples" / "images"
WIDTH, HEIGHT = 1200, 800


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        demo = Path(folder) / "demo"
        run(["demo", str(demo)])
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto((demo / "out" / "report.html").as_uri())
        leaderboard = page.locator("main section").first.bounding_box()
        assert leaderboard is not None
        store("report.png", page.screenshot(full_page=True), leaderboard["y"] + leaderboard["height"])
        with serving(demo) as served:
            page.goto(served.url + Urls().passage("q01", "heat-pump-01"))
            store("serve.png", page.screenshot(), HEIGHT)
        browser.close()


def store(name: str, png: bytes, height: float) -> None:
    """Store the upper part of a screenshot with 256 colours."""
    image = Image.open(io.BytesIO(png)).convert("RGB").crop((0, 0, WIDTH, round(height)))
    image.quantize(256).save(IMAGES / name, optimize=True)


if __name__ == "__main__":
    main()
