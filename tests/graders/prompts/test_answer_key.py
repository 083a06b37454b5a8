from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from converters.records import Item
from trecexam.graders.prompts import published
from trecexam.graders.prompts.answer_key import is_correct, normalised, stop_words


@pytest.mark.parametrize(
    ("answer", "key"),
    [
        ("Paris", ["Paris"]),
        ("paris.", ["Paris"]),
        ("the Eiffel Tower", ["Eiffel Towers"]),
        ("in the year of 1889", ["year 1889"]),
        ("photosynthesis", ["photosynthesys"]),
        ("It is running!", ["runs"]),
        ("UK", ["uk"]),
        ("b", ["B"]),
        ("a)", ["A"]),
        ("c++", ["C++"]),
        ("Lyon", ["Paris", "Lyon"]),
        ("US", ["U.S."]),
        ("U.S.", ["the U.S."]),
        ("the US", ["U.S."]),
        ("GAs", ["Ga."]),
    ],
)
def test_answers_that_differ_only_in_form_are_correct(answer: str, key: list[str]) -> None:
    assert is_correct(answer, key)


@pytest.mark.parametrize(
    ("answer", "key"),
    [
        ("London", ["Paris"]),
        ("", ["Paris"]),
        ("cat", ["car"]),  # three letters: similarity does not count
        ("1889", ["1989"]),  # 75%
        ("the", ["a"]),  # only stop words
        ("Paris is the capital of France", ["Paris"]),
        ("unanswerable", ["Paris"]),
        ("anything", []),
        ("C", ["C++"]),
        ("C#", ["C++"]),
        ("-5", ["5"]),
        ("a", ["a+"]),
    ],
)
def test_other_answers_are_not_correct(answer: str, key: list[str]) -> None:
    assert not is_correct(answer, key)


@pytest.mark.parametrize("answer", ["yes", "Yes!", "correct", "TRUE", "'true'"])
def test_a_true_key_accepts_answers_that_mean_true(answer: str) -> None:
    assert is_correct(answer, ["True"])
    assert is_correct(answer, ["true", "Yes"])
    assert not is_correct(answer, ["false"])


@pytest.mark.parametrize("answer", ["no", "No.", "incorrect", "false"])
def test_a_false_key_accepts_answers_that_mean_false(answer: str) -> None:
    assert is_correct(answer, ["False"])
    assert not is_correct(answer, ["true"])


def test_edit_similarity_must_be_above_four_fifths() -> None:
    """Insertions and deletions over both lengths: 8 common letters of 9 and 11 are just 0.8."""
    assert not is_correct("bcdfghjkqq", ["bcdfghjkww"])  # 2 * 8 / 20 = 0.8
    assert is_correct("bcdfghjkmq", ["bcdfghjkmw"])  # 2 * 9 / 20 = 0.9


@given(st.text(alphabet=string.ascii_letters + " ", min_size=1).filter(lambda t: len(normalised(t)) >= 2))
def test_an_answer_is_correct_in_any_case_and_punctuation(text: str) -> None:
    if normalised(text, without_stop_words=True) and text.strip().lower() not in {"true", "false"}:
        assert is_correct(f" {text.upper()}!", [text])


def test_the_stop_words_equal_those_of_nltk() -> None:
    assert len(stop_words()) == 179
    assert {"the", "of", "shouldn't", "yourselves"} <= stop_words()


def test_the_prompt_with_a_key_rates_right_answers_1() -> None:
    prompt = published()["QuestionCompleteConcisePromptWithAnswerKey2"]
    item = Item("q1", "q1/1", "Where is the Louvre?", "question", ("Paris",))
    assert prompt.needs_key
    assert prompt.read("paris", item) == 1
    assert prompt.read("unanswerable", item) == 0


def test_a_model_is_asked_whether_an_answer_is_as_correct_as_the_key() -> None:
    """`exam_verify_answer --t5-verification` of EXAM's released code."""
    prompt = published()["AnswerVerification"]
    item = Item("q1", "q1/1", "Where is the Louvre?", "question", ("Paris", "the 1st arrondissement"))
    assert prompt.needs_key
    assert prompt.text("", item, "in France") == (
        'For the question "Where is the Louvre?" the correct answer is "Paris or the 1st arrondissement". '
        'Is "in France" an equally correct response to this question? Answer yes or no.'
    )
    readings = [prompt.read(answer, item) for answer in ("yes", "Yes.", "no", "no, it is not", "perhaps")]
    assert readings == [1, 1, 0, 0, None]


@pytest.mark.parametrize(
    ("key", "asked"),
    [
        ("all of the above", "all of a fin and a gill and a tail"),
        ("None of the above", "neither a fin nor a gill nor a tail"),
        ("a fin", "a fin"),
    ],
)
def test_a_key_of_all_or_none_of_the_above_names_the_choices_to_the_model(key: str, asked: str) -> None:
    choices = (("a", "a fin"), ("b", "a gill"), ("c", "a tail"))
    item = Item("q1", "q1/1", "What has a fish?", "question", (key,), choices=choices)
    text = published()["AnswerVerification"].text("", item, "fins")
    assert f'the correct answer is "{asked}". Is "fins"' in text
