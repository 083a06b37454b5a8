"""Options: their number does not grow, and each is used in the docs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from command_tree import leaves

from trecexam.cli.main import cli, run

ROOT = Path(__file__).parents[2]
#: Options of every command that prints a result, and those that select one of several graders.
SHARED = frozenset({"--json", "--wide", "--output", "--grader"})
#: Numbers of options of all commands and of any one command. Lower them; raise them only with a reason.
AT_MOST, OWN_AT_MOST = 426, 220
#: Options of the whole program that a docs page need not use.
PROGRAM = frozenset({"--version", "--debug", "--trust-code"})

#: Options of other programs, and those that click adds.
ELSEWHERE = frozenset({"--help", "--address", "--qrel-query-facets"})


def _options() -> Iterator[tuple[str, click.Option]]:
    """(command, option) of all commands, and of the program as a whole."""
    for words, command in [((), cli), *leaves()]:
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                yield " ".join(words), parameter


def _is_shared(command: str, option: click.Option) -> bool:
    """Whether it is a common option; `init --grader` names a kind of grader instead."""
    return bool(SHARED & {*option.opts}) and (command, option.opts) != ("init", ["--grader"])


def _command_lines() -> list[str]:
    """The words after `trecexam` in every command line of the docs."""
    pages = [ROOT / "README.md", *sorted((ROOT / "examples").glob("*.md"))]
    texts = [page.read_text() for page in pages]
    for notebook in (ROOT / "examples").glob("*.ipynb"):
        cells = json.loads(notebook.read_text())["cells"]
        texts += ["".join(cell["source"]) for cell in cells]
    whole = "\n".join(texts).replace("\\\n", " ")
    return [line.strip() for line in re.findall(r"\btrecexam ([^\n|;`#&]*)", whole)]


def test_the_number_of_options_does_not_grow() -> None:
    options = list(_options())
    own = [option for command, option in options if not _is_shared(command, option)]
    assert len(options) <= AT_MOST
    assert len(own) <= OWN_AT_MOST


def test_every_option_is_used_in_the_docs() -> None:
    lines = _command_lines()
    unused = []
    for command, option in _options():
        names = {*option.opts, *option.secondary_opts}
        if _is_shared(command, option) or names & PROGRAM:
            continue
        used = (
            re.split(r"[ =]", line) for line in lines if line == command or line.startswith(f"{command} ")
        )
        if not any(names & {*words} for words in used):
            unused.append(f"{command} {'/'.join(sorted(names))}")
    assert unused == []


def test_messages_name_only_options_that_exist() -> None:
    there = {name for _, option in _options() for name in (*option.opts, *option.secondary_opts)} | ELSEWHERE
    wrong = []
    for path in (*(ROOT / "trecexam").rglob("*.py"), *(ROOT / "trecexam").rglob("*.html")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", line))
            wrong += [f"{path.relative_to(ROOT)}:{number}: {name}" for name in sorted(named - there)]
    assert wrong == []


@pytest.mark.parametrize(
    ("words", "name"), [("watch t --settle nan", "--settle"), ("exam improve t --drop nan", "--drop")]
)
def test_nan_is_no_number_of_an_option(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: str, name: str
) -> None:
    assert run([word if word != "t" else str(tmp_path) for word in words.split()]) == 2
    assert f"Invalid value for '{name}': nan is not a number" in capsys.readouterr().err
