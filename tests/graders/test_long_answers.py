"""Long answers are read quickly: only their beginning is parsed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from converters.records import Item
from trecexam.extensions.banks.generation.reading import read_items
from trecexam.extensions.exams.questions.reading import read_choice, read_question
from trecexam.extensions.ragval.grader.reading import read_scores
from trecexam.extensions.ragval.knowledge.reading import read_question as read_knowledge_question
from trecexam.graders.base import MOST_READ
from trecexam.graders.prompts import published
from trecexam.graders.prompts.parsing import read_labels
from trecexam.graders.replies import read_reply

SIZE = 3_500_000
#: Endless output of broken models and servers.
PARTS = (
    *("4 ", "4\n", "\n", " ", "\t\n", "[{", '["a", ', "'a', ", "final score: ", "the final ", "<think>"),
    *("```\n", "relevance: 4 ", "**", "*a ", "Question: ", "A) a B) b ", "answer: ", '"\\', "1. what?\n"),
    *("a", "("),
)
ITEM = Item("q", "q/1", "What is it?", "question", gold_answers=("Paris",))
#: One for each parser.
PROMPTS = ("QuestionSelfRatedUnanswerablePromptWithChoices", "UMBRELA", "TRECRAG2024Support")
CHOICES = ("a pump", "a moon", "a bee", "bread")
READERS: dict[str, Callable[[str], Any]] = {
    **{name: lambda text, name=name: published()[name].read(text, ITEM) for name in PROMPTS},
    "reply": read_reply,
    "labels": lambda text: read_labels(text, 5, ["support", "not_support"]),
    "scores": read_scores,
    "items": lambda text: read_items(text, "question"),
    "exam question": read_question,
    "exam choice": lambda text: read_choice(text, CHOICES),
    "knowledge question": read_knowledge_question,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_an_answer_of_megabytes_is_read_quickly(name: str) -> None:
    pytest.importorskip("json_repair")
    pytest.importorskip("nltk")
    read = READERS[name]
    read("4")
    for part in PARTS[::2]:
        text = part * (SIZE // len(part))
        began = time.process_time()
        read(text)
        assert time.process_time() - began < 2, part


def test_text_before_the_cut_is_read_and_text_after_it_is_not() -> None:
    prompt = published()["UMBRELA"]
    for blanks, rating in ((MOST_READ - 20, 2), (MOST_READ, None)):
        assert prompt.read("." + "x" * blanks + "\nfinal score: 2", ITEM).rating == rating


def test_reasoning_text_is_ignored() -> None:
    thoughts = "<think>" + "hm " * MOST_READ + "</think>"
    assert read_reply(thoughts + "4") == ("4", False)
