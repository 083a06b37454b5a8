from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.graders.prompts import published
from trecexam.graders.prompts.answer_key import UNANSWERABLE
from trecexam.graders.prompts.parsing import (
    UNPARSED,
    read_answer,
    read_rating,
    read_yes_no,
)

LABELS = published()["QuestionSelfRatedUnanswerablePromptWithChoices"].labels
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
    ["4", " 4 ", "4.", "- 4", "- 4:", "4:", "(4)", "**4**", '"4"', "Rating: 4", "rating: 4.", "Score: 4",
     "The rating is 4", "My rating: 4", "Self-rating: 4", "4: The answer is mostly relevant and complete",
     "- 4: The answer is mostly relevant and complete but may have minor gaps or inaccuracies.",
     "4. The answer is mostly relevant", "4 - The answer is mostly relevant", "\u2022 4", "\u2013 4",
     "4 The answer is mostly relevant and complete", "4: The answer is ...", "4\n\nExplanation: it says so.",
     "Rating: 4\nThe passage says when, but not where.", "Rating:\n4", "4:\nThe answer is mostly relevant",
     "4: The answer is mostly relevant, since it names the year"],
)  # fmt: skip
def test_a_rating_alone_after_punctuation_or_followed_by_its_label_is_read(answer: str) -> None:
    assert read_rating(answer, 5, LABELS) == (4, "ok")


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
    assert read_rating(answer, 5, LABELS) == UNPARSED


@pytest.mark.parametrize("expression", UNANSWERABLE)
@pytest.mark.parametrize("form", ["{}", "{}.", " {}! ", '"{}"'])
def test_expressions_of_unanswerability_give_0(expression: str, form: str) -> None:
    for answer in (expression, expression.upper(), expression.capitalize()):
        said = form.format(answer)
        assert read_rating(said, 5, LABELS) == (0, "ok")
        assert read_yes_no(said) == (0, "ok")
        assert read_answer(said) == (0, "ok")


@given(st.integers(0, 5), LEADS, MARKS)
def test_punctuation_around_a_digit_changes_nothing(rating: int, lead: str, tail: str) -> None:
    assert read_rating(f"{lead}{rating}{tail}", 5, LABELS) == (rating, "ok")


def test_a_rating_above_the_maximum_of_a_smaller_scale_is_unparsed() -> None:
    assert read_rating("2", 2) == (2, "ok")
    assert read_rating("3", 2) == UNPARSED


@pytest.mark.parametrize(
    ("answer", "rating"),
    [("Yes", 1), ("yes.", 1), (" YES ", 1), ("Yes, it does", 1), ("True", 1), ("Relevant", 1), ("No", 0),
     ("no.", 0), ("No, it does not", 0), ("irrelevant", 0), ("Not relevant", 0),
     ("Unanswerable", 0), ("false", 0)],
)  # fmt: skip
def test_yes_and_no_are_read_from_the_first_word(answer: str, rating: int) -> None:
    assert read_yes_no(answer) == (rating, "ok")


@pytest.mark.parametrize("answer", ["", "maybe", "The passage says yes", "1", "nope", "yesterday"])
def test_neither_yes_nor_no_is_unparsed(answer: str) -> None:
    assert read_yes_no(answer) == UNPARSED
