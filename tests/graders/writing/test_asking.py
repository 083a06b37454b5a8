"""Sending prompts to writers: requests, storage, counts, and when it stops."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from trecexam.config import GeneratorSection
from trecexam.errors import GraderError, TrecexamError
from trecexam.graders.base import Estimate
from trecexam.graders.meter import Meter, Usage
from trecexam.graders.replies import Unwritten, WrittenText
from trecexam.graders.writing.asking import AnswerFile, AskingResult, Job, KeepingWriter, Kept, PromptSet
from trecexam.graders.writing.base import Fitted


class Echo:
    """Answers a prompt with itself, one at a time; prompts in `fails` raise an error."""

    model, new_tokens, is_here = "echo", 9, False
    environment: ClassVar = {"device": "test"}

    def __init__(
        self, seed: int = 0, fails: Mapping[str, Exception | WrittenText | Unwritten] | None = None
    ) -> None:
        self.seed: int | None = seed
        self.fails = fails or {}
        self.meter = Meter(GeneratorSection())
        self.prompts: list[str] = []

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"writer": "echo", "seed": self.seed}

    def plain(self, text: str) -> str:
        return text

    def fitted(self, render: Callable[[str], str], text: str) -> Fitted:
        return Fitted(render(text), cut=False)

    def write(self, prompts: Iterable[str]) -> Iterator[Sequence[tuple[str, WrittenText | Unwritten]]]:
        for prompt in prompts:
            failure = self.fails.get(prompt)
            if isinstance(failure, Exception):
                raise failure
            self.prompts.append(prompt)
            self.meter.count("", "", 2, 3)
            yield [(prompt, failure or WrittenText(f"{prompt}!"))]

    def estimate(self, prompts: Sequence[str]) -> Estimate:
        return Estimate(len(prompts), self.meter.expected_out(10, short=False))


def prompts_to(writer: Echo, folder: Path, **prompts: str) -> PromptSet[str]:
    return together(folder, (writer, prompts))[0]


def together(folder: Path, *asked: tuple[Echo, Mapping[str, str]]) -> list[PromptSet[str]]:
    file = AnswerFile(folder / "kept.jsonl")
    return [PromptSet(KeepingWriter(writer, file), prompts) for writer, prompts in asked]


def ask_all(prompts: PromptSet[str]) -> AskingResult[str]:
    return Job([prompts], lambda result: result).ask()


def test_prompts_without_an_answer_are_reported_and_sent_again_next_time(tmp_path: Path) -> None:
    prompts = prompts_to(Echo(fails={"x": Unwritten("is silent")}), tmp_path, a="x", b="y")
    result = ask_all(prompts)
    assert result.unwritten == (("a", "the model is silent"),)
    assert not result.complete
    assert prompts.unanswered() == ["x"]


def test_a_refusal_is_an_answer_that_is_stored_and_reported_each_time(tmp_path: Path) -> None:
    refuses = WrittenText("I will not say", refused=True)
    ask_all(prompts_to(Echo(fails={"x": refuses}), tmp_path, a="x", b="y"))
    again = Echo()
    prompts = prompts_to(again, tmp_path, a="x", b="y")
    result = ask_all(prompts)
    assert (again.prompts, result.asked, result.reused) == ([], 0, 2)
    assert result.unwritten == (("a", "the model refused: I will not say"),)
    assert [key for key, _ in prompts.answered()] == ["b"]


def two_rounds(writer: Echo, folder: Path, saved: list[str]) -> Job[AskingResult[str]]:
    """Asks about x, then about the answer."""
    rounds = [prompts_to(writer, folder, a="x")]

    def further(result: AskingResult[str]) -> list[PromptSet[str]]:
        answers = [kept.text for _, kept in rounds[-1].answered()]
        rounds.append(prompts_to(writer, folder, a=answers[0]))
        return rounds[-1:] if len(rounds) == 2 else []

    def write(result: AskingResult[str]) -> AskingResult[str]:
        saved.extend([kept.text for each in rounds for _, kept in each.answered()])
        return result

    return Job(rounds[:], write, further)


def test_rounds_are_sent_one_after_the_other_and_counted_together(tmp_path: Path) -> None:
    shown: list[tuple[int, int]] = []
    writer = Echo()
    saved: list[str] = []
    made = two_rounds(writer, tmp_path, saved).ask(lambda *counts: shown.append(counts))
    assert (made.asked, made.used, saved) == (2, Usage(2, 4, 6), ["x!", "x!!"])
    assert shown == [(0, 1), (1, 1), (1, 2), (2, 2)]
    assert two_rounds(Echo(), tmp_path, []).estimate() == Estimate(0, 3)
    assert two_rounds(Echo(), tmp_path, []).ask().reused == 2


def test_an_error_is_raised_after_paid_answers_are_saved(tmp_path: Path) -> None:
    saved: list[str] = []
    job = two_rounds(Echo(fails={"x!": GraderError("no such model")}), tmp_path, saved)
    with pytest.raises(GraderError, match="no such model"):
        job.ask()
    assert saved == ["x!"]
    assert prompts_to(Echo(), tmp_path, a="x").unanswered() == []


# Cached answers: after any damage, each is unchanged or requested again.


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
