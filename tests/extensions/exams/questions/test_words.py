from __future__ import annotations

import json

import pytest
from outside import outside

from trecexam.extensions.exams.questions.words import bloom_levels, bloom_words, question_type, question_types


@pytest.mark.parametrize(
    ("question", "levels"),
    [
        ("Which of these describes how the pump is configured?", ("Understanding", "Applying")),
        ("Analysing the log, which fault do you identify?", ("Remembering", "Analyzing")),
        ("How is the circuit optimised, and who designed it?", ("Analyzing", "Creating")),
        ("Which test tells them apart?", ("Analyzing", "Evaluating")),
        ("What is the boiling point of water?", ()),
        ("", ()),
    ],
)
def test_levels_are_those_of_the_lemmas_in_the_question(question: str, levels: tuple[str, ...]) -> None:
    assert bloom_levels(question) == levels


@pytest.mark.parametrize("level", list(bloom_words()))
def test_every_published_word_is_found_by_its_own_lemma(level: str) -> None:
    for word in bloom_words()[level]:
        assert level in bloom_levels(f"Which of them will {word} it?"), word


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is it?", "what"),
        ("In which year did it end?", "which"),
        ("When did it end?", "when"),
        ("When a valve leaks, what follows?", "what"),
        ("A user reports an error. Why does it occur when he logs in?", "why"),
        ("Whose pump is it?", "who"),
        ("What\u2019s the reason?", "what"),
        ("Can it be repaired when it leaks?", "when"),
        ("Is the somewhat whatever correct?", "other"),
        ("", "other"),
    ],
)
def test_the_type_is_the_interrogative_word(question: str, expected: str) -> None:
    assert question_type(question) == expected
    assert expected in question_types()


def test_the_words_of_each_level_are_the_published_ones() -> None:
    published = json.loads(outside("prompts/bloom.json").read_bytes())
    assert bloom_words() == {level: frozenset(words) for level, words in published.items()}
