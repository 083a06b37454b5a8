from __future__ import annotations

from pathlib import Path

import pytest
from scripted_server import KEY, serving
from support import make_small_track

from trecexam.cli.main import run


def test_init_makes_a_track_that_asks_a_server(tmp_path: Path) -> None:
    source = make_small_track(tmp_path / "source")
    files = ["--passages", source / "passages.jsonl", "--bank", source / "bank.questions.jsonl"]
    with serving() as server:
        words = [
            "--grader",
            "openai",
            "--model",
            "/models/x",
            "--base-url",
            server.url,
            "--key-env",
            "TEST_KEY",
        ]
        root = str(tmp_path / "new")
        assert run(["init", root, *map(str, files), "--runs", str(source / "runs"), *words]) == 0
        assert run(["watch", root, "--once"]) == 0
        assert {body["model"] for body in server.bodies} == {"/models/x"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--grader", "openai", "--key-env", KEY], "--key-env"),
        (["--grader", "openai", "--base-url", f"https://u:{KEY}@host/v1"], "--base-url"),
        (["--grader", "causal", "--base-url", "http://host/v1"], "for --grader openai"),
    ],
)
def test_init_refuses_what_cannot_be_asked_and_repeats_no_key(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", str(tmp_path / "new"), *words]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert KEY not in err
    assert not (tmp_path / "new").exists()
