"""Reference pages, the page of formats and pages with terminal sessions equal what the program says."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import click
import pytest
from played_pages import DL19, PAGES, play
from rag_track import make_demo_with_two_graders
from support import ROOT

import converters
import trecexam
from trecexam.cli.main import cli
from trecexam.config.track_config import config_class

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


def _commands(group: click.Group, above: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{above}{name}", command
        if isinstance(command, click.Group):
            yield from _commands(command, f"{above}{name} ")


def test_each_page_equals_the_output_of_the_script(reference: ModuleType) -> None:
    """If this fails: python examples/mkdocs/reference.py"""
    assert {path.name for path in COMMANDS.parent.iterdir()} <= {Path(name).name for name in reference.PAGES}
    for name in reference.PAGES:
        assert (ROOT / name).read_text() == reference.page(name), f"{name} is old"


def test_each_command_and_each_of_its_options_is_on_the_page() -> None:
    sections = dict(re.findall(r"^## trecexam (.+?)\n(.*?)(?=^## |\Z)", COMMANDS.read_text(), re.M | re.S))
    commands = dict(_commands(cli))
    assert sections.keys() == commands.keys()
    for name, command in commands.items():
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert option.opts[-1] in sections[name], (name, option.opts)


def test_each_setting_is_on_the_page() -> None:
    page = (COMMANDS.parent / "settings.md").read_text()
    for name, field in config_class().model_fields.items():
        if name != "graders":
            section = page.partition(f"## [{name}]\n")[2].partition("\n## ")[0]
            for key in field.annotation.model_fields:  # type: ignore[union-attr]
                assert f"`{key}`" in section, f"{name}.{key}"


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
