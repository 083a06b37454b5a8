"""Reference pages, the page of formats and pages with terminal sessions equal what the program says."""

from __future__ import annotations

import importlib.util
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest
from played_pages import DL19, PAGES, play
from rag_track import make_demo_with_two_graders
from support import ROOT

import converters
import trecexam

COMMANDS = ROOT / "examples" / "reference" / "commands.md"


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    path = ROOT / "examples" / "mkdocs" / "reference.py"
    spec = importlib.util.spec_from_file_location("reference_pages", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_page_equals_the_output_of_the_script(reference: ModuleType) -> None:
    """If this fails: python examples/mkdocs/reference.py"""
    assert {path.name for path in COMMANDS.parent.iterdir()} <= {Path(name).name for name in reference.PAGES}
    for name in reference.PAGES:
        assert (ROOT / name).read_text() == reference.page(name), f"{name} is old"


def test_each_file_of_the_demo_track_is_on_the_page(tmp_path: Path) -> None:
    make_demo_with_two_graders(tmp_path / "demo")
    with trecexam.open_track(tmp_path / "demo") as track:
        track.update()
    page = (COMMANDS.parent / "files.md").read_text()
    out = tmp_path / "demo" / "out"
    folders = [out, *(out / name for name in track.graders)]
    names = {path.name for folder in folders for path in folder.iterdir()} - {*track.graders}
    assert len(names) > 15
    for name in names:
        assert f"`{name}`" in page or f"`{name}/`" in page, name


# Each format in examples/formats.md says how it is recognised, and is, by an example.


def test_each_format_is_recognised_by_its_example_or_by_a_file_of_the_fuzz_corpus(tmp_path: Path) -> None:
    assert all(known.told_by for known in converters.formats())
    files = sorted((ROOT / "tests" / "fuzz" / "corpus").iterdir())
    for known in converters.formats():
        example = tmp_path / f"{known.name}{known.extensions[0] if known.extensions else ''}"
        example.write_text(known.example.replace("<TAB>", "\t") + "\n")
        files.append(example)
    recognised: set[str] = set()
    for path in files:
        with suppress(converters.ConversionError):
            recognised.add(converters.sniff(path))
    named = {
        known.name for known in converters.formats() if known.told_by.startswith("accepted where it is named")
    }
    assert {known.name for known in converters.formats()} - named <= recognised


# Terminal sessions in the docs show the output of the commands.


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_the_page_shows_the_output_of_its_commands(name: str, tmp_path: Path) -> None:
    """If this fails: python tests/helpers/played_pages.py"""
    if "dl19" in name and not DL19.is_dir():
        pytest.skip("shared/dl19 is not here")
    page = (ROOT / name).read_text()
    assert page.count("\n$ trecexam ") >= 6
    assert play(name, tmp_path) == page
