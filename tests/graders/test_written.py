"""Graders of generated texts: the common part of eRAG and RAGVAL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from converters.records import Item
from trecexam.graders.base import Answer, Cell, Estimate
from trecexam.graders.prompts import Reading
from trecexam.graders.replies import Unwritten, WrittenText
from trecexam.graders.writing.base import Fitted, WritingGrader


class Echo:
    """A writer that answers with the length of each prompt, in batches of two."""

    model, new_tokens = "echo", 9
    seed: int | None = None
    meter = environment = None
    is_here = False
    identity: Mapping[str, Any] = {"writer": "echo"}

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def plain(self, text: str) -> str:
        return text

    def fitted(self, render: Any, text: str) -> Fitted:
        return Fitted(render(text[:10]), cut=len(text) > 10)

    def write(self, prompts: Iterable[str]) -> Iterator[Sequence[tuple[str, WrittenText | Unwritten]]]:
        yield []
        waiting = iter(prompts)
        while batch := [prompt for prompt, _ in zip(waiting, range(2), strict=False)]:
            self.prompts += batch
            yield [(prompt, self._said(prompt)) for prompt in reversed(batch)]

    def _said(self, prompt: str) -> WrittenText | Unwritten:
        if "secret" in prompt:
            return Unwritten("will not say", refused=True)
        return Unwritten("is tired") if "tired" in prompt else WrittenText(str(len(prompt) % 10))

    def estimate(self, prompts: Sequence[str]) -> Estimate:
        return Estimate(len(prompts))


class Digits(WritingGrader):
    name, item_kinds = "digits", frozenset({"question"})

    def prompt(self, cell: Cell) -> Fitted:
        return self.writer.fitted(lambda text: f"{cell.query_id}: {text}", cell.text)

    def read(self, item: Item, text: str, cut: bool = False) -> Reading:
        return Reading(int(text), "ok") if int(text) <= 5 else Reading(None, "unparsed")

    def asked(self) -> Mapping[str, Any]:
        return {"prompts": [{"name": "digits", "asks": "question"}]}


def cell(query_id: str, doc_id: str, text: str, item: str = "i") -> Cell:
    return Cell(query_id, "what", doc_id, text, Item(query_id, f"{query_id}/{item}", item))


@pytest.fixture
def grader() -> Digits:
    return Digits(Echo())


def test_cells_with_the_same_prompt_share_one_answer(grader: Digits) -> None:
    cells = [cell("q", "d", "heat", item) for item in ("one", "two", "three")]
    answers = [pair for batch in grader.grade([*cells, cell("q", "e", "pumps"), cells[0]]) for pair in batch]
    assert list(grader.writer.prompts) == ["q: heat", "q: pumps"]  # type: ignore[attr-defined]
    assert [found for found, _ in answers].count(cells[0]) == 2
    assert {found for found, _ in answers} == {*cells, cell("q", "e", "pumps")}
    assert {answer for found, answer in answers if found.text == "heat"} == {Answer(None, "unparsed", "7")}


def test_a_missing_text_is_an_error_or_refusal_with_its_reason(grader: Digits) -> None:
    answers = {
        found.doc_id: answer
        for batch in grader.grade([cell("q", "a", "secret"), cell("q", "b", "tired")])
        for found, answer in batch
    }
    assert answers == {
        "a": Answer(None, "refused", "was not answered: the model will not say"),
        "b": Answer(None, "error", "was not answered: the model is tired"),
    }


def test_the_identity_has_the_writer_and_the_prompt(grader: Digits) -> None:
    assert grader.identity == {
        "grader": "digits",
        "model": "echo",
        "writer": {"writer": "echo"},
        "prompts": [{"name": "digits", "asks": "question"}],
    }
