"""What the extensions' calls give is one kind of thing, and their reading commands show it in all forms."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import trecexam
from trecexam.cli.main import run
from trecexam.tables.result import Result

CALLS: dict[str, Callable[[Any], Result]] = {
    "exam.fit": lambda track: track.exam.fit(),
    "exam.improve": lambda track: track.exam.improve(steps=1),
    "bank.check": lambda track: track.bank.check(),
    "bank.diff": lambda track: track.bank.diff(*[track.folder.root / "bank.nuggets.jsonl"] * 2),
    "judging.plan": lambda track: track.judging.plan(["ada", "bob"], overlap=0.5, budget=20),
    "judging.progress": lambda track: track.judging.progress(),
    "judging.agreement": lambda track: track.judging.agreement(),
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results") / "demo"
    assert run(["demo", str(root)]) == 0
    assert run(["judge", "plan", str(root), "--assessors", "ada,bob"]) == 0
    return root


@pytest.mark.parametrize("call", CALLS)
def test_a_call_gives_tables_by_name_notes_and_facts(demo: Path, call: str) -> None:
    with trecexam.open_track(demo) as track:
        found = CALLS[call](track)
    value = json.loads(found.to_json())
    assert value["notes"] == list(found.notes)
    for name, table in found.tables.items():
        assert [list(row) for row in value[name]] == [list(table.header)] * len(table)
    assert not set(found.facts) & {"notes", *found.tables}
    header, *lines = found.to_tsv().splitlines()
    assert list(found.to_pandas().columns) == header.split("\t") == list(found.table.header)
    assert len(lines) == len(found) == len(found.to_pandas())
    assert len(repr(found).splitlines()) <= 40
    assert found._repr_html_().startswith("<")
    assert found.to_latex().count(r"\begin{tabular}") == len(found.for_people())


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("bank", "check", "TRACK"), 1),
        (("bank", "diff", "BANK", "BANK", "TRACK", "--by", "items"), 0),
        (("judge", "progress", "TRACK", "--topics"), 0),
        (("judge", "agreement", "TRACK", "--disagreements"), 0),
    ],
)
def test_a_reading_command_has_every_form_and_a_file_for_it(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], status: int
) -> None:
    places = {"TRACK": str(demo), "BANK": str(demo / "bank.nuggets.jsonl")}
    command = [places.get(word, word) for word in words]
    capsys.readouterr()
    assert run(command) == status
    notes = [line for line in capsys.readouterr().err.splitlines() if "--grader takes" not in line]
    for form in ((), ("--json",), ("--latex",), ("--table",), ("--table", "--wide")):
        assert run([*command, *form]) == status
        printed = capsys.readouterr()
        assert [line for line in printed.err.splitlines() if "--grader takes" not in line] == notes
        assert run([*command, *form, "-o", str(tmp_path / "answer")]) == status
        assert (tmp_path / "answer").read_text() == printed.out
        capsys.readouterr()
    # Of two forms the last one counts.
    assert run([*command, "--table", "--json"]) == status
    assert json.loads(capsys.readouterr().out)["notes"] == notes
