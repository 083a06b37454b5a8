"""Parsing of a nuggetizer's answers in any form."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

pytest.importorskip("json_repair")

from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.banks.generation.nuggetizing import (
    MOST_CREATED,
    NuggetPrompt,
    Nuggets,
    nuggetize,
    supposed_answer,
)
from trecexam.extensions.banks.generation.prompts import ItemRequest
from trecexam.extensions.banks.generation.reading import tidy
from trecexam.graders.writing import Fitted
from trecexam.graders.writing.kept_answers import Kept
from trecexam.graders.writing.reading import Unread

Answer = Callable[[NuggetPrompt], Kept | Unread]


def nuggets_of(answer: Answer, passages: Sequence[str] = ("A text.",)) -> Nuggets:
    """The nuggets of a query if each prompt is answered like this."""
    steps = nuggetize(
        ItemRequest("q", "a query"), passages, str, lambda render, text: Fitted(render(text), cut=False)
    )
    prompts = next(steps)
    while True:
        try:
            prompts = steps.send([answer(prompt) for prompt in prompts])
        except StopIteration as end:
            nuggets: Nuggets = end.value
            return nuggets


def answer_with(list_answer: str, label: str = "okay") -> Answer:
    """Answers each creation step with the list, and labels all nuggets the same."""

    def answer(prompt: NuggetPrompt) -> Kept:
        text = list_answer if prompt.stage == "creator" else str([label] * prompt.n_labels)
        return Kept(text, cut=False, time="t")

    return answer


@given(
    st.lists(st.text(max_size=12), max_size=40),
    st.sampled_from([str, json.dumps, "```python\n{}\n```".format]),
)
def test_every_list_that_python_or_json_writes_is_read_exactly(
    texts: list[str], written: Callable[[object], str]
) -> None:
    expected = [text for each in texts if (text := tidy(each))]
    nuggets = nuggets_of(answer_with(written(texts)))
    if expected or not texts:
        assert nuggets.unread == ()
    assert nuggets.texts == tuple(expected[:MOST_CREATED])
    assert nuggets.importances == ("okay",) * len(nuggets.texts)


@given(st.text(max_size=60))
def test_any_model_output_is_read_or_reported(said: str) -> None:
    nuggets = nuggets_of(answer_with(said))
    assert len(nuggets.texts) == len(nuggets.importances)
    assert nuggets.texts or nuggets.unread or said.strip().startswith(("[", "(", "`"))


@pytest.mark.parametrize(
    ("said", "texts"),
    [
        ('["the "big" one", "b"]', ('the "big" one', "b")),
        ("['the 'big' one', 'b']", ("the 'big' one", "b")),
        ("['it\\'s', \"b\"]", ("it's", "b")),
        ('("a", "b")', ("a", "b")),
        ("['\\d of them']", ("\\d of them",)),
        ('{"nuggets": ["a"]}', ("a",)),
        ("Here:\n- a fact\n- another", ("a fact", "another")),
        ('["a", "b"', ("a", "b")),
    ],
)
def test_lists_are_read_leniently(said: str, texts: tuple[str, ...]) -> None:
    assert nuggets_of(answer_with(said)).texts == texts


@pytest.mark.parametrize("said", ["No.", "", "[1, 2]", "<think>I wonder", "[1] says it all"])
def test_an_unreadable_list_keeps_the_previous_list(said: str) -> None:
    def answer(prompt: NuggetPrompt) -> Kept:
        lists = prompt.stage == "creator" and "[1] second" in prompt.text
        return Kept(said, cut=False, time="") if lists else answer_with('["a", "b"]')(prompt)  # type: ignore[return-value]

    nuggets = nuggets_of(answer, [*["first"] * 10, "second"])
    assert nuggets.texts == ("a", "b")
    assert len(nuggets.unread) == 1
    assert nuggets.unread[0].startswith("passages 11 to 11 changed no nugget: its answer ")


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
        return Kept('["a", "b"]' if prompt.stage == "creator" else labels, cut=False, time="")

    assert nuggets_of(answer).importances == ("vital", "okay")


@pytest.mark.parametrize(
    "labels", ['["vital"]', '["vital", "okay", "okay"]', '["vital", "fine"]', "both", ""]
)
def test_unknown_labels_count_as_none(labels: str) -> None:
    asked = []

    def answer(prompt: NuggetPrompt) -> Kept:
        asked.append(prompt.stage)
        return Kept('["a", "b"]' if prompt.stage == "creator" else labels, cut=False, time="")

    nuggets = nuggets_of(answer)
    assert (nuggets.texts, nuggets.importances) == (("a", "b"), ("", ""))
    assert asked == ["creator", "scorer", "scorer"]
    assert nuggets.unread[0].startswith("nuggets 1 to 2 got no importance")


def test_prompts_without_an_answer_are_not_sent_again_and_are_reported() -> None:
    asked = []

    def answer(prompt: NuggetPrompt) -> Unread:
        asked.append(prompt)
        return Unread("the model refused")

    nuggets = nuggets_of(answer)
    assert nuggets == Nuggets((), (), "", ("passages 1 to 1 changed no nugget: the model refused",))
    assert len(asked) == 1


def test_an_assumed_answer_has_the_maximum_length() -> None:
    nuggets = nuggets_of(supposed_answer, ["text"] * 25)
    assert (len(nuggets.texts), nuggets.unread) == (MOST_CREATED, ())
