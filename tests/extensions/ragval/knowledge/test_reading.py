from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.ragval.knowledge.reading import LONGEST, read_question
from trecexam.graders.replies import Unread


@pytest.mark.parametrize(
    "answer",
    [
        "Why does heat rise?",
        '  "Why does heat rise?"\n',
        "\u201cWhy does heat rise?\u201d",
        "Question: Why does heat rise?",
        "**Creative question:** Why does heat rise?",
        "Here is a creative question about the text:\n\nWhy does heat rise?",
        "<think>What? Why?</think>Why does heat rise?",
        '{"question": "Why does heat rise?"}',
        "```\nWhy does heat rise?\n```",
        "Why does\nheat rise?",
    ],
)
def test_a_question_is_read_without_surrounding_text(answer: str) -> None:
    assert read_question(answer) == "Why does heat rise?"


def test_quotation_marks_inside_a_question_are_kept() -> None:
    assert read_question('"What does "darker" mean to her?"') == 'What does "darker" mean to her?'
    assert read_question('What is "heat"?') == 'What is "heat"?'


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty answer"),
        ("  \n", "empty answer"),
        ("<think>Why? Hm", "ends early: raise `max_new_tokens`"),
        ("I cannot do that.", "no question mark"),
        ("1. Why?\n2. How?", "several questions"),
        ("- Why?\n- How?", "several questions"),
        ("Why " * LONGEST + "?", "longer than 1,000 characters"),
    ],
)
def test_an_answer_without_a_question_gives_the_reason(answer: str, reason: str) -> None:
    assert read_question(answer) == Unread(reason)


def test_a_truncated_answer_is_not_a_question() -> None:
    assert read_question("Why? And", cut=True) == Unread("ends early: raise `max_new_tokens`")


@given(st.text())
def test_any_text_is_read_or_rejected(text: str) -> None:
    assert isinstance(read_question(text), str | Unread)
