"""Terminal sessions in the docs show the output of the commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from played_pages import DL19, PAGES, play
from support import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_the_page_shows_the_output_of_its_commands(name: str, tmp_path: Path) -> None:
    """If this fails: python tests/helpers/played_pages.py"""
    if "dl19" in name and not DL19.is_dir():
        pytest.skip("shared/dl19 is not here")
    page = (ROOT / name).read_text()
    assert page.count("\n$ trecexam ") >= 6
    assert play(name, tmp_path) == page
