"""The docs site, built by `mkdocs build --strict`: every link and anchor works."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from site_build import build_site
from support import ROOT

import converters
import trecexam
from trecexam import track_groups

pytest.importorskip("mkdocstrings_handlers.python", reason="the extra `docs` is not installed")
pytestmark = pytest.mark.slow

#: Elements that a browser loads automatically.
FETCHED = re.compile(r"<(?:script|img|iframe)[^>]*\ssrc=\"?([^\s\">]+)|<link[^>]*\shref=\"?([^\s\">]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(tmp_path_factory.mktemp("site") / "site")


def test_every_page_of_the_repository_is_on_the_site_and_searchable(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    texts = {entry["location"]: entry["text"] for entry in index["docs"]}
    for page in (ROOT / "examples").glob("*.md"):
        assert f"examples/{page.stem}/" in texts
    assert "Drop run files into a folder" in texts[""]
    assert "opposite orders" in texts["examples/glossary/#against-the-official-side"]
    assert "means and standard errors per run" in texts["reference/#trecexam.Track.leaderboard"]


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    page = (site / "reference" / "index.html").read_text()
    names = [f"trecexam.{name}" for name in trecexam.__all__ if name != "__version__"]
    names += [f"converters.{name}" for name in converters.__all__]
    names += [f"trecexam.Track.{n}" for n in vars(trecexam.Track) if not n.startswith("_")]
    names += [
        f"trecexam.track_groups.{group.__name__}.{n}"
        for group in track_groups.Group.__subclasses__()
        if group.__module__ == track_groups.__name__
        for n in vars(group)
        if not n.startswith("_")
    ]
    assert len(names) > 60
    assert [name for name in names if f'id="{name}"' not in page] == []


def test_a_page_loads_nothing_from_other_hosts(site: Path) -> None:
    for page in site.rglob("*.html"):
        fetched = [match[1] or match[2] for match in FETCHED.finditer(page.read_text())]
        assert fetched
        assert not [place for place in fetched if "//" in place]
