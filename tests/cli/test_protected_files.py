"""No output replaces what a track is made of, or what it stores."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import trecexam
from trecexam.cli.main import run
from trecexam.errors import TrecexamError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made") / "t"
    assert run(["demo", str(root)]) == 0
    with trecexam.open_track(root) as track:
        track["rubric"].override("q01", "heat-pump-01", 5, item=1, who="me", why="it does")
    return root


@pytest.fixture
def track(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(made, tmp_path / "t"))


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "target",
    [
        "trecexam.toml", "queries.tsv", "passages.jsonl", "bank.nuggets.jsonl", "qrels.txt", "support.tsv",
        "grades.jsonl.gz", "overrides.tsv", "runs/bm25.run", "runs/new.run", ".trecexam/grades.sqlite",
        "out/rubric.qrels",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "command",
    [
        "leaderboard t -o {}", "compare t --pairs -o {}", "pack t -o {}", "export qrels t -o {}",
        "fill t -o {}", "convert t/queries.tsv {} --to queries", "plot leaderboard t -o {}",
        "audit --qrels t/qrels.txt --runs t/runs -o {}",
    ],
)  # fmt: skip
def test_an_output_that_is_a_file_of_a_track_is_rejected(
    track: Path, capsys: pytest.CaptureFixture[str], command: str, target: str
) -> None:
    if command.startswith("convert") and target in ("queries.tsv", "runs/bm25.run", "runs/new.run"):
        pytest.skip("converted runs go into the drop folder; IN and OUT differ")
    before = contents(track)
    assert run(command.format(f"t/{target}").split()) == 2
    (line,) = [
        line
        for line in capsys.readouterr().err.splitlines()
        if "name another file" in line or "give -o" in line
    ]
    assert target in line
    assert contents(track) == before


def test_an_input_of_the_command_is_not_replaced(track: Path, capsys: pytest.CaptureFixture[str]) -> None:
    qrels = Path(shutil.copy(track / "qrels.txt", "people.qrels"))
    before = qrels.read_bytes()
    assert run(["evaluate", "people.qrels", "t/runs/bm25.run", "-m", "nDCG@10", "-o", "people.qrels"]) == 2
    assert run(["audit", "-o", "people.qrels", "--qrels", "people.qrels", "--runs", "t/runs"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert errors == ["trecexam: people.qrels: is an input of this command; name another file"] * 2
    assert qrels.read_bytes() == before


def test_a_link_to_an_input_and_an_input_that_is_a_link_are_not_replaced(
    track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (track / "queries.tsv").rename("queries.tsv")
    (track / "queries.tsv").symlink_to(Path("queries.tsv").absolute())
    Path("link").symlink_to(track / "bank.nuggets.jsonl")
    for target in ("t/queries.tsv", "link"):
        assert run(["leaderboard", "t", "-o", target]) == 2
        assert "is one of the track's own files" in capsys.readouterr().err
    assert Path("link").is_symlink()
    assert (track / "queries.tsv").is_symlink()


def test_a_circle_of_links_is_replaced_like_another_link(track: Path) -> None:
    Path("a").symlink_to("b")
    Path("b").symlink_to("a")
    assert run(["leaderboard", "t", "-o", "a"]) == 0
    assert Path("a").read_text().startswith("run\t")


def test_fill_replaces_only_files_that_it_wrote(track: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = Path(shutil.copy(track / "qrels.txt", "people.qrels"))
    before = people.read_bytes()
    assert run(["fill", "t", "-o", "people.qrels"]) == 2
    assert "exists, and `fill` did not write it" in capsys.readouterr().err
    assert people.read_bytes() == before
    for _ in range(2):
        assert run(["fill", "t", "-o", "merged.qrels"]) == 0


def test_judgments_are_not_exported_into_a_track(track: Path) -> None:
    before = (track / "qrels.txt").read_bytes()
    with trecexam.open_track(track) as opened, pytest.raises(TrecexamError, match="is a track, whose qrels"):
        opened.judging.export(track)
    assert (track / "qrels.txt").read_bytes() == before


def test_outputs_beside_the_inputs_of_a_track_are_written_and_replaced(track: Path) -> None:
    for _ in range(2):
        assert run(["leaderboard", "t", "-o", "t/mine.tsv"]) == 0
        assert run(["convert", "t/runs/bm25.run", "t/runs/copy.run", "--to", "run"]) == 0
