"""No command runs code of a track without --trust-code."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from support import err

pytest.importorskip("httpx2")

from command_tree import leaves
from erag_track import answer, erag_track, outputs_file
from scripted_server import serving

import trecexam
from trecexam.cli.main import run
from trecexam.errors import TrecexamError

LEAVES_A_TRACE = (
    "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"
    "def metric(output, gold):\n    return 0.5\n"
)


@pytest.fixture(scope="module")
def graded_erag(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A graded track whose metric is a module in its folder; with runs, official judgments and outputs."""
    with serving(answer) as server:
        root = erag_track(tmp_path_factory.mktemp("erag") / "track", server.url, metric="em")
        (root / "qrels.txt").write_text("q1 0 d1 1\nq2 0 d3 1\nq3 0 d5 0\n")
        assert run(["watch", str(root), "--once"]) == 0
        config = root / "trecexam.toml"
        config.write_text(config.read_text().replace('"em"', '"mine:metric"'))
        (root / "mine.py").write_text(LEAVES_A_TRACE)
        yield root


@pytest.fixture
def track(graded_erag: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(graded_erag, tmp_path / "track"))


def least_arguments(command: click.Command, track: Path, scratch: Path) -> list[str]:
    """Values for all arguments and required options of a command, with the track wherever possible."""
    words: list[str] = []
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.required:
            continue
        if isinstance(parameter.type, click.Choice):
            value = str(parameter.type.choices[0])
        elif not isinstance(parameter.type, click.Path):
            value = "1" if parameter.type.name.startswith("integer") else "leaderboard"
        elif "TRACK" in (parameter.metavar or ""):
            value = str(track)
        elif parameter.type.exists or isinstance(parameter, click.Argument):
            value = str(track / "qrels.txt")
        else:
            value = str(scratch / "new")
        words += [parameter.opts[0], value] if isinstance(parameter, click.Option) else [value]
    return words


COMMANDS = dict(leaves())


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_no_command_runs_code_of_an_untrusted_track(
    track: Path, tmp_path: Path, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run([*names, *least_arguments(COMMANDS[names], track, tmp_path)])
    assert not (track / "ran").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["serve", "TRACK", "--port", "0"],
        ["watch", "TRACK", "--once"],
        ["watch", "TRACK", "--estimate"],
        ["watch", "TRACK", "--poll"],
        ["leaderboard", "TRACK"],
        ["leaderboard", "TRACK", "--official"],
        ["status", "TRACK", "--json"],
        ["export", "grades", "TRACK"],
        ["erag", "TRACK", "-o", "erag"],
        ["erag", "TRACK", "--outputs", "outputs.jsonl", "-o", "erag"],
        ["erag", "TRACK", "--outputs", "outputs.jsonl", "--metric", "mine:other", "-o", "erag"],
    ],
    ids=" ".join,
)
def test_a_command_that_needs_untrusted_code_names_the_file_and_the_option(
    track: Path,
    tmp_path: Path,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    outputs_file(tmp_path / "outputs.jsonl")
    capsys.readouterr()
    assert run([str(track) if word == "TRACK" else word for word in words]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"trecexam: {track / 'mine.py'}: ")
    assert "--trust-code" in lines[0]
    assert not (track / "ran").exists()


@pytest.mark.parametrize("metric", ["shutil:rmtree", "elsewhere:metric"])
def test_a_track_does_not_run_code_from_outside_its_folder(
    track: Path,
    tmp_path: Path,
    metric: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere.py").write_text(LEAVES_A_TRACE)
    config = track / "trecexam.toml"
    config.write_text(config.read_text().replace("mine:metric", metric))
    assert f"the metric '{metric}' is code" in err(capsys, "leaderboard", track)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "words", [["--trust-code", "leaderboard", "TRACK"], ["leaderboard", "TRACK", "--trust-code"]]
)
def test_code_is_trusted_for_one_command_only(track: Path, words: list[str]) -> None:
    command = [str(track) if word == "TRACK" else word for word in words]
    assert run(command) == 0
    assert (track / "ran").exists()
    assert run(["leaderboard", str(track)]) == 2


def test_code_can_be_trusted_by_environment_variable_and_from_python(
    track: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trecexam.open_track(track) as opened, pytest.raises(TrecexamError, match="trust_code=True"):
        opened.leaderboard()
    with trecexam.open_track(track, trust_code=True) as opened:
        by_code = opened.leaderboard()
    monkeypatch.setenv("TRECEXAM_TRUST_CODE", "0")
    assert run(["status", str(track)]) == 2
    monkeypatch.setenv("TRECEXAM_TRUST_CODE", "1")
    with trecexam.open_track(track) as opened:
        assert opened.leaderboard() == by_code
