"""Parsing of a nuggetizer's answers in any form."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("json_repair")

from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.banks.generation.nuggetizing import MOST_CREATED, nuggetize
from trecexam.extensions.banks.generation.prompts import Ask, ItemRequest, Listed, played
from trecexam.extensions.banks.generation.reading import tidy
from trecexam.graders.writing.asking import Kept
from trecexam.graders.writing.base import Fitted

Answer = Callable[[str, int], str]
WRITER: Any = SimpleNamespace(plain=str, fitted=lambda render, text: Fitted(render(text), cut=False))
SOURCES: Any = [SimpleNamespace(writer=WRITER)] * 2


def nuggets_of(answer: Answer) -> Listed:
    """The nuggets of a query if each prompt is answered like this, by its stage and the labels wanted."""

    def get(ask: Ask) -> Kept:
        wanted = re.search(r"label each of the (\d+) nuggets", ask.prompt)
        return Kept(answer("scorer", int(wanted[1])) if wanted else answer("creator", 0), "t")

    listed = played(nuggetize(ItemRequest("q", "a query"), ["A text."], SOURCES, "ask again"), get)
    assert isinstance(listed, Listed)
    return listed


def answer_with(list_answer: str) -> Answer:
    """Answers each creation step with the list, and labels all nuggets the same."""
    return lambda stage, n_labels: list_answer if stage == "creator" else str(["okay"] * n_labels)


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
    assert nuggets.items == [(text, "okay") for text in expected[:MOST_CREATED]]


@given(st.text(max_size=60))
def test_any_model_output_is_read_or_reported(said: str) -> None:
    nuggets = nuggets_of(answer_with(said))
    assert nuggets.items or nuggets.problem or said.strip().startswith(("[", "(", "`"))
