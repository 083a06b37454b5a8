"""`init --inputs-of`: another track of the same files."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tomllib
from pathlib import Path

import pytest
from support import hashed_rating, make_small_track, write_run

from trecexam.cli.main import run

MEASURES = ("-m", "P(rel=4)@20", "-m", "nDCG@10")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A track with recorded grades, and in its folder one of the same runs whose labels are the judgments."""
    root = make_small_track(
        tmp_path_factory.mktemp("joined") / "track",
        config='[track]\ndepth = 8\n[grader]\nname = "recorded"\nrecorded = "grades.jsonl"\n',
    )
    (root / "grades.jsonl").write_text(
        "".join(
            json.dumps(
                {
                    "query_id": q,
                    "doc_id": f"{q}-d{d:02}",
                    "item_id": f"{q}/{i}",
                    "rating": hashed_rating(f"{q}{d}", str(i)),
                }
            )
            + "\n"
            for q in ("q1", "q2", "q3")
            for d in range(12)
            for i in range(4)
        )
    )
    second = ["init", str(root / "second"), "--inputs-of", str(root), "--recorded", str(root / "qrels.txt")]
    assert run(second) == 0
    settings = root / "second" / "trecexam.toml"
    # By P all runs are equal.
    scored = '[scores]\nmeasures = ["nDCG@3", "nDCG@8"]\n'
    settings.write_text(settings.read_text().replace("[scores]\n", scored))
    for folder in (root, root / "second"):
        assert run(["watch", str(folder), "--once"]) == 0
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "track"))


def table(text: str) -> dict[str, dict[str, str]]:
    return {row["run"]: row for row in csv.DictReader(io.StringIO(text), delimiter="\t")}


def test_a_track_in_another_ones_folder_takes_its_inputs_from_where_they_are(root: Path) -> None:
    settings = tomllib.loads((root / "second" / "trecexam.toml").read_text())
    assert settings["track"] == {
        "queries": "../queries.tsv",
        "passages": "../passages.jsonl",
        "bank": ["../bank.*jsonl"],
        "qrels": "../qrels.txt",
        "runs": "../runs",
        "depth": 8,
    }
    assert {path.name for path in (root / "second").iterdir()} == {
        ".trecexam", "out", "recorded.qrels.txt", "trecexam.toml"
    }  # fmt: skip


def test_the_inputs_of_a_track_that_has_anothers_are_named_without_a_way_round(
    root: Path, tmp_path: Path
) -> None:
    third = tmp_path / "a third" / "track"
    assert run(["init", str(third), "--inputs-of", str(root / "second")]) == 0
    settings = tomllib.loads((third / "trecexam.toml").read_text())["track"]
    assert settings["queries"] == "../../track/queries.tsv"
    assert (settings["runs"], settings["bank"]) == ("../../track/runs", ["../../track/bank.*jsonl"])


def test_what_is_given_beside_it_is_taken_in_place_of_the_tracks_own(root: Path, tmp_path: Path) -> None:
    (root / "people.qrels").write_text("q1 0 q1-d00 1\n")
    given = ["--inputs-of", str(root), "--qrels", str(root / "people.qrels")]
    assert run(["init", str(tmp_path / "other"), *given]) == 0
    settings = tomllib.loads((tmp_path / "other" / "trecexam.toml").read_text())["track"]
    assert (settings["qrels"], settings["runs"]) == ("qrels.txt", "../track/runs")


def test_runs_and_the_inputs_of_another_track_are_one_too_many(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["init", str(tmp_path / "other"), "--inputs-of", str(root), "--runs", str(root / "runs")]
    assert run(given) == 2
    assert "--inputs-of takes the runs of that track; leave --runs out" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_a_run_that_is_dropped_into_one_track_is_in_both(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(root / "runs" / "late.run", {q: [f"{q}-d03", f"{q}-d01"] for q in ("q1", "q2", "q3")})
    for folder in (root, root / "second"):
        assert run(["watch", str(folder), "--once"]) == 0
    capsys.readouterr()
    assert run(["leaderboard", str(root / "second"), "-m", "nDCG@8"]) == 0
    assert float(table(capsys.readouterr().out)["late"]["nDCG@8"]) > 0
