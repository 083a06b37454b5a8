from __future__ import annotations

from pathlib import Path

import pytest
from scripted_server import KEY

from trecexam.cli.main import run
from trecexam.config import load_config


def test_init_rejects_an_address_with_a_key_and_does_not_repeat_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--grader", "openai", "--base-url", f"https://u:{KEY}@host/v1"]
    assert run(["init", str(tmp_path / "new"), *words]) == 2
    err = capsys.readouterr().err
    assert "--base-url" in err
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
