"""Calls return results of one class, and reading commands show them in all formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_tree import leaves
from rag_track import make_demo_with_two_graders

import trecexam
from trecexam.cli.main import run
from trecexam.results.result import Result

CALLS: dict[str, Callable[[Any], Result]] = {
    "status": lambda track: track.status(),
    "status of a grader": lambda track: track["support"].status(),
    "override.ratings": lambda track: track.override.ratings(),
    "verify.grading": lambda track: track.verify.grading(),
    "verify.grading of citations": lambda track: track["support"].verify.grading(),
    "verify.grid": lambda track: track.verify.grid(),
    "verify.missing": lambda track: track.verify.missing(),
    "verify.missing by query": lambda track: track.verify.missing(per_query=True),
    "verify.spurious": lambda track: track.verify.spurious(),
    "fill.find": lambda track: track.fill.find(),
    "judge_next": lambda track: track.judge_next(top=3),
    "exam.fit": lambda track: track.exam.fit(),
    "exam.improve": lambda track: track.exam.improve(steps=1),
    "bank.check": lambda track: track.bank.check(),
    "bank.diff": lambda track: track.bank.diff(*[track.folder.root / "bank.nuggets.jsonl"] * 2),
    "judging.plan": lambda track: track.judging.plan(["ada", "bob"], overlap=0.5, budget=20),
    "judging.agreement": lambda track: track.judging.agreement(),
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results") / "demo"
    make_demo_with_two_graders(root)
    assert run(["watch", str(root), "--once"]) == 0
    assert run(["judge", "plan", str(root), "--assessors", "ada,bob"]) == 0
    return root


@pytest.fixture(scope="module")
def track(demo: Path) -> Iterator[trecexam.Track]:
    with trecexam.open_track(demo) as track:
        yield track


@pytest.mark.parametrize("call", CALLS)
def test_a_call_returns_tables_by_name_notes_and_facts(track: trecexam.Track, call: str) -> None:
    found = CALLS[call](track)
    value = json.loads(found.to_json())
    assert value["notes"] == list(found.notes)
    # The table of a status consists of its facts, and JSON has these.
    for name, table in () if call.startswith("status") else found.tables.items():
        assert [list(row) for row in value[name]] == [list(table.header)] * len(table)
    assert not set(found.facts) & {"notes", *found.tables}
    header, *lines = found.to_tsv().splitlines()
    assert list(found.to_pandas().columns) == header.split("\t") == list(found.table.header)
    assert len(lines) == len(found) == len(found.to_pandas())
    assert len(repr(found).splitlines()) <= 50
    assert found._repr_html_().startswith("<")
    assert found.to_latex().count(r"\begin{tabular}") == len(found._for_people())


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("status", "TRACK"), 0),
        (("override", "TRACK", "--list"), 0),
        (("verify", "grading", "TRACK", "-q", "q01"), 0),
        (("verify", "grid", "TRACK", "--top", "3"), 0),
        (("verify", "missing", "TRACK"), 0),
        (("graders",), 0),
        (("formats",), 0),
        (("check", "RUN"), 1),
        (("judge-next", "TRACK", "--top", "3"), 0),
        (("bank", "diff", "BANK", "BANK", "TRACK"), 0),
        (("judge", "agreement", "TRACK"), 0),
    ],
)
def test_a_reading_command_has_every_format_and_an_output_file(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], status: int
) -> None:
    files = {"BANK": demo / "bank.nuggets.jsonl"}
    files |= {"RUN": tmp_path / "bad.run"}
    (tmp_path / "bad.run").write_text("q1 Q0 a 1 2 t\nq1 Q0 a 2 1 t\n")
    places = {"TRACK": str(demo), **{name: str(path) for name, path in files.items()}}
    command = [places.get(word, word) for word in words]
    capsys.readouterr()
    printed, notes = {}, set()
    for form in ("", "--json", "--wide", "--json --wide"):
        assert run([*command, *form.split()]) == status
        printed[form], said = capsys.readouterr()
        notes.add(said)
    assert len(notes) == 1
    assert run([*command, "--json", "-o", str(tmp_path / "answer")]) == status
    assert (tmp_path / "answer").read_text() == printed["--json"]
    said = notes.pop().splitlines()
    every = json.loads(printed["--json"])["notes"]
    assert len(said) == min(len(every), 4)
    assert {*said[:3]} <= {*every}
    assert said[3:] in ([], [f"{len(every) - 3} more note{'s' * (len(every) > 4)}: --json has all"])


#: Commands that write, run or serve something. Their output is not their only purpose.
WRITE = {
    *("demo", "init", "watch", "serve", "learn", "fill"),
    *("convert", "plot", *(f"export {what}" for what in ("qrels", "official", "grades"))),
    *("export pool", "export runs", "judge plan", "judge export", "judge import", "bank generate"),
    *("export leaderboard", "autojudge", "export pack"),
    *("export subtopics", "export responses", "exam generate", "ragval questions", "ragval answers"),
    # Prints a file, which is neither a table nor JSON.
    "config",
}


def test_each_reading_command_has_json_wide_and_an_output_file() -> None:
    forms = {"--json", "--wide", "-o"}
    found = {
        " ".join(words): {word for each in command.params for word in each.opts}
        for words, command in leaves()
    }
    lacking = {name: forms - options for name, options in found.items() if not forms <= options}
    assert {name: what for name, what in lacking.items() if name not in WRITE} == {}
    assert found.keys() >= WRITE
