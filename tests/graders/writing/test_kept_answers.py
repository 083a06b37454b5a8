"""Cached answers: after any damage, each is unchanged or requested again."""

from __future__ import annotations

import os
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trecexam.errors import TrecexamError
from trecexam.graders.meter import Usage
from trecexam.graders.writing.kept_answers import AnswerFile, KeepingWriter, Kept


def source_of(
    path: Path, model: str = "tiny", purse: str = "generator", used: Usage | None = None
) -> KeepingWriter:
    writer: Any = SimpleNamespace(
        identity={"writer": model},
        new_tokens=100,
        environment=None,
        meter=SimpleNamespace(used=used or Usage()),
    )
    return KeepingWriter(writer, AnswerFile(path, purse))


ANSWERS = {
    f"prompt {n}": Kept(f"answer {n} ü\n", "2026-11-23", n or None, 7, n == 3, 100 if n % 2 else None)
    for n in range(9)
}
USED = Usage(9, 100, 63)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "generated.jsonl"
    source_of(path, purse="grader", used=USED).add(ANSWERS.items())
    return path


def test_an_added_answer_is_found_for_the_same_writer_only(path: Path) -> None:
    source = source_of(path)
    file, writer = source.file, source.digest
    assert {prompt: source.get(prompt) for prompt in ANSWERS} == ANSWERS
    assert file.used([writer]) == USED
    assert source_of(path, "other").get("prompt 1") is None
    assert (file.spent("grader"), file.spent("grader", {writer})) == (USED, Usage())
    assert file.spent("generator") == file.used(["other"]) == Usage()


def test_after_any_damage_an_answer_is_unchanged_or_missing(path: Path) -> None:
    rng, whole = random.Random(0), path.read_bytes()
    for number in range(600):
        damaged = bytearray(whole)
        bit = rng.randrange(8 * len(whole))
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged if number % 4 else damaged[: bit // 8])
        source = source_of(path)
        found = {prompt: answer for prompt in ANSWERS if (answer := source.get(prompt))}
        assert found.items() <= ANSWERS.items()
        assert source.file.used([source.digest]) in (USED, Usage())
        # A damaged newline spoils two lines.
        assert number % 4 == 0 or len(found) >= len(ANSWERS) - 2


def test_an_irregular_file_is_reported_because_nothing_can_be_stored(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TrecexamError, match=r"pipe: cannot be read: is a pipe or a device"):
        AnswerFile(tmp_path / "pipe")


def test_an_answer_that_was_cut_off_at_fewer_tokens_counts_as_none(tmp_path: Path) -> None:
    source = source_of(tmp_path / "answers.jsonl")
    cut, whole = Kept("a", "t", cut_at=100), Kept("b", "t")
    source.add([("long", cut), ("short", whole)])
    for limit, expected in ((50, cut), (100, cut), (101, None)):
        read = source_of(tmp_path / "answers.jsonl")
        read.writer.new_tokens = limit
        assert (read.get("long"), read.get("short")) == (expected, whole)
