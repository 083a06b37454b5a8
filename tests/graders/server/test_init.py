from __future__ import annotations

from pathlib import Path

import pytest
from scripted_server import KEY, serving
from support import make_small_track

from trecexam.cli.main import run
from trecexam.config import load_config


def test_init_makes_a_track_that_uses_a_server(tmp_path: Path) -> None:
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
        ]
        root = str(tmp_path / "new")
        assert run(["init", root, *map(str, files), "--runs", str(source / "runs"), *words]) == 0
        config = tmp_path / "new" / "trecexam.toml"
        config.write_text(config.read_text().replace("[grader]\n", '[grader]\nkey_env = "TEST_KEY"\n'))
        assert run(["watch", root, "--once"]) == 0
        assert {body["model"] for body in server.bodies} == {"/models/x"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--grader", "openai", "--base-url", f"https://u:{KEY}@host/v1"], "--base-url"),
    ],
)
def test_init_rejects_invalid_settings_and_repeats_no_key(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", str(tmp_path / "new"), *words]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert KEY not in err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("words", "grader"),
    [
        (["--base-url", "http://host/v1", "--model", "m"], "openai"),
        (["--metric", "f1", "--base-url", "http://host/v1", "--model", "m"], "erag"),
    ],
)
def test_a_setting_for_one_grader_only_names_it(words: list[str], grader: str, tmp_path: Path) -> None:
    assert run(["init", str(tmp_path / "new"), *words]) == 0
    assert load_config(tmp_path / "new" / "trecexam.toml").grader.name == grader


def test_a_setting_that_the_grader_ignores_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--grader", "embedding", "--base-url", "http://host/v1", "--prompt", "Sun", "--metric", "f1"]
    assert run(["init", str(tmp_path / "new"), *words]) == 0
    err = capsys.readouterr().err
    for option in ("--base-url", "--prompt", "--metric"):
        assert f"note: {option} changes nothing: it is for --grader " in err
