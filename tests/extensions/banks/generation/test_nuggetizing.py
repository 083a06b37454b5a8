"""Parsing of a nuggetizer's answers in any form."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("json_repair")

from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.banks.generation.generate import Listed
from trecexam.extensions.banks.generation.nuggetizing import (
    MOST_CREATED,
    NuggetPrompt,
    nuggetize,
    played,
)
from trecexam.extensions.banks.generation.prompts import ItemRequest
from trecexam.extensions.banks.generation.reading import tidy
from trecexam.graders.replies import Unread
from trecexam.graders.writing.asking import Kept
from trecexam.graders.writing.base import Fitted

Answer = Callable[[NuggetPrompt], Kept | Unread]
WRITER: Any = SimpleNamespace(plain=str, fitted=lambda render, text: Fitted(render(text), cut=False))


def nuggets_of(answer: Answer, passages: Sequence[str] = ("A text.",)) -> Listed:
    """The nuggets of a query if each prompt is answered like this."""
    listed = played(nuggetize(ItemRequest("q", "a query"), passages, WRITER), answer)
    assert isinstance(listed, Listed)
    return listed


def answer_with(list_answer: str, label: str = "okay") -> Answer:
    """Answers each creation step with the list, and labels all nuggets the same."""

    def answer(prompt: NuggetPrompt) -> Kept:
        text = list_answer if prompt.stage == "creator" else str([label] * prompt.n_labels)
        return Kept(text, "t")

    return answer


@given(
    st.lists(st.text(max_size=12), max_size=40),
    st.sampled_from([str, json.dumps, "```python\n{}\n```".format]),
)
def test_every_list_that_python_or_json_writes_is_read_exactly(
    texts: list[str], written: Callable[[object], str]
) -> None:
    # Placeholders of a prompt are no nuggets.
    expected = [text for each in texts if each.strip() not in ("...", "\u2026") and (text := tidy(each))]
    nuggets = nuggets_of(answer_with(written(texts)))
    if expected or not texts:
        assert nuggets.problem == ""
    assert nuggets.texts == expected[:MOST_CREATED]
    assert nuggets.importances == ["okay"] * len(nuggets.texts)


@given(st.text(max_size=60))
def test_any_model_output_is_read_or_reported(said: str) -> None:
    nuggets = nuggets_of(answer_with(said))
    assert len(nuggets.texts) == len(nuggets.importances)
    assert nuggets.texts or nuggets.problem or said.strip().startswith(("[", "(", "`"))


@pytest.mark.parametrize(
    "labels",
    [
        "[vital, okay]",
        "vital, okay",
        "1. vital\n2. okay",
        '["Vital", "OKAY."]',
        '{"labels": ["vital", "okay"]}',
    ],
)
def test_labels_are_read_leniently(labels: str) -> None:
    def answer(prompt: NuggetPrompt) -> Kept:
        return Kept('["a", "b"]' if prompt.stage == "creator" else labels, "")

    assert nuggets_of(answer).importances == ["vital", "okay"]
