"""Ratings and lists of labels, read as the papers say and as the released code does."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from converters.records import Item
from trecexam.graders.prompts import published
from trecexam.graders.prompts.answer_key import UNANSWERABLE, is_correct, normalised, stop_words
from trecexam.graders.prompts.parsing import (
    read_answer,
    read_labels,
    read_rating,
    read_yes_no,
)

ITEM = Item("q1", "q1/1", "What is it?")
NUGGET = Item("q", "q/1", "It is so.", "nugget")
SELF_RATING = published()["QuestionSelfRatedUnanswerablePromptWithChoices"]
ASSIGNED = ("support", "partial_support", "not_support")
LABELS = SELF_RATING.labels
NUGGET_LABELS = published()["NuggetSelfRatedPrompt"].labels
MARKS = st.text(alphabet=" \n\t-*_.,:;!?'\"`()[]{}|", max_size=6)
#: A sign or a point right before a digit belongs to its number.
BEFORE = MARKS.filter(lambda marks: not marks.endswith(("-", ".", ",")))
LEADS = st.one_of(
    BEFORE, st.sampled_from(["Rating: ", "rating ", "Score: ", "**Rating:** ", "The rating is ", "- "])
)


def test_the_scale_of_a_prompt_is_parsed_from_its_text() -> None:
    assert LABELS[5] == "The answer is highly relevant, complete, and accurate."
    assert set(LABELS) == set(NUGGET_LABELS) == set(range(6))
    assert published()["Thomas"].labels[2] == "highly relevant, very helpful for this query"


@pytest.mark.parametrize(
    "answer",
    ["", " ", "-", "6", "9.", "10", "44", "4-6 weeks", "4 to 6 weeks", "4.5", "4,5", "4/6", "8/10", "-1",
     "45%", "$4", "<4",
     "4th", "4 and 5", "4 or 5", "a4", "in 1994", "The answer is 42", "yes", "relevant", "4: of the 5 states",
     "1. The capital of France is Paris", "3: The Treaty of Versailles", "5: The answer is 3",
     "5\n4\n3\n2\n1\n0",
     "5: The answer is not relevant or complete at all.", "\n".join(f"- {r}: {t}" for r, t in LABELS.items()),
     "5 million", "3 tablespoons", "Rating: high", "\u00b2"],
)  # fmt: skip
def test_other_text_is_unparsed(answer: str) -> None:
    assert read_rating(answer, 5, LABELS) is None


@pytest.mark.parametrize("expression", UNANSWERABLE)
@pytest.mark.parametrize("form", ["{}", "{}.", " {}! ", '"{}"'])
def test_expressions_of_unanswerability_give_0(expression: str, form: str) -> None:
    for answer in (expression, expression.upper(), expression.capitalize()):
        said = form.format(answer)
        assert read_rating(said, 5, LABELS) == 0
        assert read_yes_no(said) == 0
        assert read_answer(said) == 0


@given(st.integers(0, 5), LEADS, MARKS)
def test_punctuation_around_a_digit_changes_nothing(rating: int, lead: str, tail: str) -> None:
    assert read_rating(f"{lead}{rating}{tail}", 5, LABELS) == rating


@pytest.mark.parametrize(
    ("answer", "rating"),
    [("Yes", 1), ("yes.", 1), (" YES ", 1), ("Yes, it does", 1), ("True", 1), ("Relevant", 1), ("No", 0),
     ("no.", 0), ("No, it does not", 0), ("irrelevant", 0), ("Not relevant", 0),
     ("Unanswerable", 0), ("false", 0), ("Answer: Yes", 1), ("**Answer:** no", 0), ('{"relevant": false}', 0),
     ('{"reason": "yes", "answer": "No"}', 0), ("The answer is no.", 0)],
)  # fmt: skip
def test_yes_and_no_are_read_from_the_first_word(answer: str, rating: int) -> None:
    assert read_yes_no(answer) == rating


@pytest.mark.parametrize(
    "answer",
    [
        "['support', 'not_support']",
        "```python\n['support', 'not_support',]\n```",
        "support, not_support",
        '{"labels": ["support", "not_support"]}',
        "Labels: ['Support', 'not support'].",
        "1) `support`,\n2) `not_support`",
        "support\n\nnot_support",
        "List: ['support', 'not_support']\nAgain: ['support', 'not_support']",
        "[['support', 'not_support']]",
        "1. Cats eat fish: support\n2. Cats fly: not_support",
        '{"1": "support", "2": "not_support"}',
        '[{"nugget": "a", "label": "support"}, {"nugget": "b", "label": "not_support"}]',
        "['fish', 'fly'] are ['support', 'not_support']",
        "Labels: support, not_support",
    ],
)
def test_a_list_of_labels_is_read_in_any_formatting(answer: str) -> None:
    labels = read_labels(answer, 2, ASSIGNED)
    assert labels is not None
    prompt = published()["NuggetAssign"]
    assert [prompt.read(label, NUGGET) for label in labels] == [5, 0]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "['support']",
        "['support', 'perhaps']",
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
    assert read_labels(answer, 2, ASSIGNED) is None


@given(st.lists(st.sampled_from(ASSIGNED), min_size=1, max_size=12))
def test_each_list_that_python_or_json_writes_is_read_exactly(labels: list[str]) -> None:
    assert read_labels(str(labels), len(labels), ASSIGNED) == labels
    assert read_labels(json.dumps(labels), len(labels), ASSIGNED) == labels
    assert read_labels(str(labels), len(labels) + 1, ASSIGNED) is None


@given(st.text("[]'\", _suport\n{}<>/think", max_size=60), st.integers(1, 3))
def test_any_text_is_read_as_labels_or_not_at_all(answer: str, number: int) -> None:
    labels = read_labels(answer, number, ASSIGNED)
    assert labels is None or len(labels) == number
    assert published()["NuggetAssign"].read(answer, NUGGET) in {None, 5, 3, 0}


@pytest.mark.parametrize(
    ("answer", "paper", "workbench"),
    [
        ("4", 4, 4),
        ("- 4.", 4, 4),
        ("unanswerable", 0, 1),
        ("No", 0, 1),
        ("no relevant information", 0, 1),
        ("", None, 1),
        ("the capital of France", None, 0),
        ("5: The answer is highly relevant, complete, and accurate.", 5, 0),
        ("Rating: 4", 4, 0),
        ("7", None, 0),
    ],
)
def test_self_ratings_are_read_as_in_the_workbench(answer: str, paper: int | None, workbench: int) -> None:
    assert SELF_RATING.read(answer, ITEM) == paper
    assert SELF_RATING.read(answer, ITEM, "workbench") == workbench


def test_unanswerability_is_compared_by_edit_similarity_in_the_workbench() -> None:
    """The workbench compares by edit similarity: "unanswered" is like "unanswerable" there."""
    assert SELF_RATING.read("Unanswered", ITEM, "workbench") == 1
    assert SELF_RATING.read("Unanswered", ITEM) is None


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
    assert prompt.read(answer, ITEM) == paper
    assert prompt.read(answer, ITEM, "workbench") == workbench


@pytest.mark.parametrize(
    ("answer", "workbench"), [("Paris", 1), ("unanswerable", 0), ("Unanswerables", 0), ("", 0)]
)
def test_extracted_answers_are_read_as_in_the_workbench(answer: str, workbench: int) -> None:
    prompt = published()["QuestionCompleteConciseUnanswerablePromptWithChoices"]
    assert prompt.read(answer, ITEM, "workbench") == workbench


@pytest.mark.parametrize(
    ("answer", "key"),
    [
        ("Paris", ["Paris"]),
        ("paris.", ["Paris"]),
        ("the Eiffel Tower", ["Eiffel Towers"]),
        ("in the year of 1889", ["year 1889"]),
        ("photosynthesis", ["photosynthesys"]),
        ("UK", ["uk"]),
        ("a)", ["A"]),
        ("c++", ["C++"]),
        ("Lyon", ["Paris", "Lyon"]),
        ("US", ["U.S."]),
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
        ("C#", ["C++"]),
        ("-5", ["5"]),
    ],
)
def test_other_answers_are_not_correct(answer: str, key: list[str]) -> None:
    assert not is_correct(answer, key)


@pytest.mark.parametrize("answer", ["yes", "Yes!", "correct", "TRUE", "'true'"])
def test_a_true_key_accepts_answers_that_mean_true(answer: str) -> None:
    assert is_correct(answer, ["True"])
    assert is_correct(answer, ["true", "Yes"])
    assert not is_correct(answer, ["false"])


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
