"""Parsing as in the released code, where it differs from the paper."""

from __future__ import annotations

import pytest

from converters.records import Item
from trecexam.graders.prompts import published

ITEM = Item("q1", "q1/1", "What is it?")
SELF_RATING = published()["QuestionSelfRatedUnanswerablePromptWithChoices"]


@pytest.mark.parametrize(
    ("answer", "paper", "workbench"),
    [
        ("4", (4, "ok"), 4),
        ("- 4.", (4, "ok"), 4),
        ("unanswerable", (0, "ok"), 1),
        ("No", (0, "ok"), 1),
        ("no relevant information", (0, "ok"), 1),
        ("", (None, "unparsed"), 1),
        ("the capital of France", (None, "unparsed"), 0),
        ("5: The answer is highly relevant, complete, and accurate.", (5, "ok"), 0),
        ("Rating: 4", (4, "ok"), 0),
        ("7", (None, "unparsed"), 0),
    ],
)
def test_self_ratings_are_read_as_in_the_workbench(
    answer: str, paper: tuple[int | None, str], workbench: int
) -> None:
    assert SELF_RATING.read(answer, ITEM) == paper
    assert SELF_RATING.read(answer, ITEM, "workbench") == (workbench, "ok")


def test_unanswerability_is_compared_by_edit_similarity_in_the_workbench() -> None:
    """The workbench compares by edit similarity: "unanswered" is like "unanswerable" there."""
    assert SELF_RATING.read("Unanswered", ITEM, "workbench").rating == 1
    assert SELF_RATING.read("Unanswered", ITEM).status == "unparsed"


@pytest.mark.parametrize(
    ("answer", "paper", "workbench"),
    [
        ("Yes", 1, 1),
        ("true", 1, 1),
        ("Yes, it does", 1, 0),
        ("Relevant", 1, 0),
        ("No", 0, 0),
        ("maybe", None, 0),
    ],
)
def test_direct_answers_are_read_as_in_the_workbench(answer: str, paper: int | None, workbench: int) -> None:
    prompt = published()["Sun"]
    assert prompt.read(answer, ITEM).rating == paper
    assert prompt.read(answer, ITEM, "workbench").rating == workbench


@pytest.mark.parametrize(
    ("answer", "workbench"), [("Paris", 1), ("unanswerable", 0), ("Unanswerables", 0), ("", 0)]
)
def test_extracted_answers_are_read_as_in_the_workbench(answer: str, workbench: int) -> None:
    prompt = published()["QuestionCompleteConciseUnanswerablePromptWithChoices"]
    assert prompt.read(answer, ITEM, "workbench").rating == workbench
