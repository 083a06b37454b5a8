"""Cached answers: after any damage, each is unchanged or requested again."""

from __future__ import annotations

import os
import random
from pathlib import Path
from types import SimpleNamespace

import pytest

from trecexam.errors import TrecexamError
from trecexam.graders.meter import Usage
from trecexam.graders.writing.kept_answers import AnswerFile, KeepingWriter, Kept

WRITER = "tiny"
ANSWERS = {
    f"prompt {n}": Kept(f"answer {n} ü\n", "2026-11-23", n or None, 7, n == 3, n % 2 or None)
    for n in range(9)
}
USED = Usage(9, 100, 63)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "generated.jsonl"
    AnswerFile(path, "grader").add(WRITER, ANSWERS.items(), USED)
    return path


def test_an_added_answer_is_found_for_the_same_writer_only(path: Path) -> None:
    kept = AnswerFile(path)
    assert {prompt: kept.get(WRITER, prompt) for prompt in ANSWERS} == ANSWERS
    assert kept.used(WRITER) == USED
    assert kept.get("other", "prompt 1") is None
    assert (kept.spent("grader"), kept.spent("grader", {WRITER})) == (USED, Usage())
    assert kept.spent("generator") == kept.used("other") == Usage()


def test_after_any_damage_an_answer_is_unchanged_or_missing(path: Path) -> None:
    rng, whole = random.Random(0), path.read_bytes()
    for number in range(600):
        damaged = bytearray(whole)
        bit = rng.randrange(8 * len(whole))
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged if number % 4 else damaged[: bit // 8])
        kept = AnswerFile(path)
        found = {prompt: answer for prompt in ANSWERS if (answer := kept.get(WRITER, prompt))}
        assert found.items() <= ANSWERS.items()
        assert kept.used(WRITER) in (USED, Usage())
        # A damaged newline spoils two lines.
        assert number % 4 == 0 or len(found) >= len(ANSWERS) - 2


def test_an_irregular_file_is_reported_because_nothing_can_be_stored(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TrecexamError, match=r"pipe: cannot be read: is a pipe or a device"):
        AnswerFile(tmp_path / "pipe")


def test_an_answer_that_was_cut_off_at_fewer_tokens_counts_as_none(tmp_path: Path) -> None:
    writer = SimpleNamespace(identity={"writer": "any"}, new_tokens=100, environment=None)
    source = KeepingWriter(writer, AnswerFile(tmp_path / "answers.jsonl"))  # type: ignore[arg-type]
    cut, whole = Kept("a", "t", cut_at=100), Kept("b", "t")
    source.add([("long", cut), ("short", whole)], Usage())
    for limit, expected in ((50, cut), (100, cut), (101, None)):
        writer.new_tokens = limit
        read = KeepingWriter(writer, AnswerFile(tmp_path / "answers.jsonl"))  # type: ignore[arg-type]
        assert (read.get("long"), read.get("short")) == (expected, whole)
