"""Parsing of a language model's answer in any form."""

from __future__ import annotations

import json
import time

import pytest

pytest.importorskip("json_repair")

from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.banks.generation.reading import ReadItems, read_items, tidy

TWO = ("What is the cost?", "Who pays for it?")
PLAIN = json.dumps({"questions": list(TWO)})

FORMS = {
    "as asked": PLAIN,
    "in a code fence": f"```json\n{PLAIN}\n```",
    "in a fence without a word": f"```\n{PLAIN}\n```",
    "after an introduction": f"Sure! Here is the question set:\n\n{PLAIN}\n\nI hope this helps.",
    "after thoughts": f'<think>Maybe {{"questions": ["No?"]}}, or not.</think>\n{PLAIN}',
    "with trailing commas": '{"questions": ["What is the cost?", "Who pays for it?",],}',
    "with single quotes": "{'questions': ['What is the cost?', 'Who pays for it?']}",
    "without quotes around the key": '{questions: ["What is the cost?", "Who pays for it?"]}',
    "with a comment": '{"questions": ["What is the cost?", // money\n"Who pays for it?"]}',
    "without a comma": '{"questions": ["What is the cost?"\n"Who pays for it?"]}',
    "a bare list": json.dumps(list(TWO)),
    "a Python list": str(list(TWO)),
    "a Python list with a name": f"questions = {list(TWO)}",
    "objects": json.dumps({"questions": [{"question": text} for text in TWO]}),
    "other objects": json.dumps({"items": [{"id": 1, "question_text": text} for text in TWO]}),
    "numbered keys": json.dumps({"1": TWO[0], "2": TWO[1]}),
    "keys of questions": json.dumps({"questions": {"q1": TWO[0], "q2": TWO[1]}}),
    "an object in an object": json.dumps({"result": {"questions": list(TWO)}}),
    "an object a line": "\n".join(json.dumps({"question": text}) for text in TWO),
    "a numbered list": f"1. {TWO[0]}\n2. {TWO[1]}",
    "a numbered list amid prose": f"Here they are:\n\n1) {TWO[0]}\n2) {TWO[1]}\n\nThese cover the topic.",
    "bullets": f"- {TWO[0]}\n- {TWO[1]}",
    "lines": f"Questions:\n{TWO[0]}\n{TWO[1]}",
    "lines of Windows": f"1. {TWO[0]}\r\n2. {TWO[1]}\r\n",
}


@pytest.mark.parametrize("answer", FORMS.values(), ids=FORMS)
def test_questions_are_read_in_any_form(answer: str) -> None:
    assert read_items(answer, "question") == ReadItems(TWO)


@pytest.mark.parametrize(
    "answer",
    [
        '{"nuggets": ["low emissions", "high costs"]}',
        '{"questions": ["low emissions", "high costs"]}',
        "1. low emissions\n2. high costs",
        "['low emissions', 'high costs']",
    ],
)
def test_nuggets_are_read_in_any_form(answer: str) -> None:
    assert read_items(answer, "nugget").texts == ("low emissions", "high costs")


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "   \n",
        "I cannot help with that.",
        "The query asks about [some] things, and {others}. What does it mean? Nobody knows.",
        "As an AI model, I would ask: what is it?",
        "{}",
        "[]",
        '{"questions": []}',
        '{"questions": null}',
        '{"error": "overloaded"}',
        "null",
        "7",
        '{"questions": [question_text_1, question_text2, ... ] }',
        "<think>What is the cost?\n1. Who pays?\n2. Who does not?",
        "[" * 50_000,
        '{"a":' * 50_000,
        '{"questions": [7, true, null]}',
    ],
)
def test_text_without_items_gives_no_items(answer: str) -> None:
    assert read_items(answer, "question").texts == ()


def test_complete_items_of_a_truncated_answer_are_used() -> None:
    found = read_items('{"questions": ["What is the cost?", "Who pays for it?", "And wh', "question")
    assert found == ReadItems(TWO, cut=True)
    assert read_items('{"questions": ["What is the cost?", "Who pays for it?"]', "question") == found
    found = read_items(f"1. {TWO[0]}\n2. {TWO[1]}\n3. And wh", "question", cut=True)
    assert found == ReadItems(TWO, cut=True)
    assert read_items("<think>So many thoughts", "question").cut


def test_an_apostrophe_does_not_end_an_item() -> None:
    assert read_items("['What is France's cost?', 'Who pays?']", "question").texts == (
        "What is France's cost?",
        "Who pays?",
    )


@given(st.lists(st.text(min_size=1), min_size=1, max_size=12))
def test_valid_json_is_read_exactly(texts: list[str]) -> None:
    # Hypothesis also tries strings of our code, and marks of thoughts are among them.
    texts = [text for text in texts if "<" not in text and "\u25c1" not in text]
    named = [text for text in texts if text.strip() and "text" not in text and text.strip(". \u2026")]
    if named:
        assert read_items(json.dumps({"questions": named}), "question").texts == tuple(named)


@given(st.text(alphabet="[]{}\"',: \n\\a?1.-`/#", max_size=200), st.sampled_from(["question", "nugget"]))
def test_no_text_raises_an_error_in_the_reader(answer: str, kind: str) -> None:
    read_items(answer, kind)  # type: ignore[arg-type]


PIECES = ("{'", '["', "[{", '", "', "\\", "'", "```\n", "<think>", "1. ", '{"a": ')


@pytest.mark.parametrize(
    "answer",
    [*(piece * (200_000 // len(piece)) for piece in PIECES), "['Who pays?'" + "\n" * 3000 + "x]"],
    ids=[*PIECES, "line breaks"],
)
def test_a_long_junk_answer_is_read_quickly(answer: str) -> None:
    began = time.process_time()
    read_items(answer, "question")
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("1. What is it?", "What is it?"),
        ("Q3: What is it?", "What is it?"),
        ("- What is it?", "What is it?"),
        ('"What is it?"', "What is it?"),
        ("**What is it?**", "What is it?"),
        ("What\n is\tit?", "What is it?"),
        ("3.5 million people", "3.5 million people"),
        ("1984 is a novel", "1984 is a novel"),
        ('"A" or "B"?', '"A" or "B"?'),
        ("\x00What\x1b is it?", "What is it?"),
    ],
)
def test_tidying_an_item_loses_no_word(text: str, plain: str) -> None:
    assert tidy(text) == plain
