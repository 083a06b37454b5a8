"""Parsing of lists of labels."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from converters.records import Item
from trecexam.graders.prompts import published
from trecexam.graders.prompts.parsing import read_labels, with_place

LABELS = ("support", "partial_support", "not_support")
ITEM = Item("q", "q/1", "It is so.", "nugget")


@pytest.mark.parametrize(
    "answer",
    [
        "['support', 'not_support']",
        '["support", "not_support"]',
        "```python\n['support', 'not_support',]\n```",
        "[support, not_support]",
        "support, not_support",
        '{"labels": ["support", "not_support"]}',
        "Labels: ['Support', 'not support'].",
        "1. support\n2. not_support\n",
        "- **Support**\n- **Not support**",
        "1) `support`,\n2) `not_support`",
        "support\n\nnot_support",
        "support,\nnot_support,\n",
    ],
)
def test_a_list_of_labels_is_read_in_any_formatting(answer: str) -> None:
    labels = read_labels(answer, 2, LABELS)
    assert labels is not None
    prompt = published()["NuggetAssign"]
    assert [prompt.read(label, ITEM).rating for label in labels] == [5, 0]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "['support']",
        "['support', 'support', 'support']",
        "['support', 'perhaps']",
        "['support', '']",
        "['support', 'not_support'",
        "['support', 'support'] or rather ['support', 'not_support']",
        "The first nugget is supported, the second is not.",
        "support not_support",
        "1. support\n2. not_support\n3. support",
        "partial\nsupport",
        "1. The first is supported: support\n2. not_support",
        "2. support\n1. not_support",
    ],
)
def test_a_list_of_the_wrong_length_is_not_read(answer: str) -> None:
    assert read_labels(answer, 2, LABELS) is None


def test_the_stored_answer_of_a_label_has_its_position_in_the_list() -> None:
    stored = with_place("Partial Support", 3, 10)
    assert json.loads(stored) == {"label": "Partial Support", "place": 3, "of": 10}
    assert published()["NuggetAssign"].read(stored, ITEM) == (3, "ok")


@given(st.lists(st.sampled_from(LABELS), min_size=1, max_size=12))
def test_each_list_that_python_or_json_writes_is_read_exactly(labels: list[str]) -> None:
    assert read_labels(str(labels), len(labels), LABELS) == labels
    assert read_labels(json.dumps(labels), len(labels), LABELS) == labels
    assert read_labels(str(labels), len(labels) + 1, LABELS) is None


@given(st.text("[]'\", _suport\n{}<>/think", max_size=60), st.integers(1, 3))
def test_any_text_is_read_as_labels_or_not_at_all(answer: str, number: int) -> None:
    labels = read_labels(answer, number, LABELS)
    assert labels is None or len(labels) == number
    status = published()["NuggetAssign"].read(answer, ITEM).status
    assert status in {"ok", "unparsed"}
