from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from exams import CHOICES, question
from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.exams.exam_file import ExamQuestion
from trecexam.extensions.exams.questions.distractors import (
    CandidateLimits,
    can_be_mended,
    prompt,
    read_candidates,
    refilled,
)
from trecexam.extensions.exams.questions.filters import apply
from trecexam.extensions.exams.settings import ExamSection

SETTINGS = ExamSection.model_validate({})
#: Copied from the passage, so closer to it than the right candidate.
COPIED = "electric power for its compressor"


def limits_of(*questions: ExamQuestion, settings: ExamSection = SETTINGS) -> CandidateLimits:
    return CandidateLimits.of(apply(questions, settings), settings, None)


def passes_filters(each: ExamQuestion, settings: ExamSection = SETTINGS) -> bool:
    return not apply([each], settings).reasons(0)


def test_a_wrong_candidate_copied_from_the_passage_fails_and_the_others_pass() -> None:
    bad = question(choices=(CHOICES[0], CHOICES[1], COPIED, CHOICES[3]))
    assert not passes_filters(bad)
    assert limits_of(bad).failing(bad) == (2,)
    assert limits_of(bad).failing(question()) == ()


@pytest.mark.parametrize("order", [*permutations(range(4))][::5])
def test_of_two_similar_wrong_candidates_the_later_fails_and_never_the_right_one(
    order: tuple[int, ...],
) -> None:
    texts = (CHOICES[0], "Water from the tap", "Water from the taps", "the water from the tap")
    bad = question(choices=[texts[n] for n in order], correct=order.index(0))
    wrong = [place for place in range(4) if place != bad.correct]
    # "tap" and "taps" are different words: 3 of 5 in common.
    close = [place for place in wrong if "taps" not in bad.choices[place]]
    limits = limits_of(bad)
    assert limits.failing(bad) == (max(close),)
    beside_right = replace(bad, correct=max(close))
    assert limits.failing(beside_right) == (min(close),)


def test_a_candidate_of_another_length_fails() -> None:
    settings = ExamSection.model_validate({"max_choice": 30})
    bad = question(choices=(*CHOICES[:3], "A sound of the street that is much too long"))
    assert limits_of(bad, settings=settings).failing(bad) == (3,)
    without = ExamSection.model_validate({"max_choice": 30, "without": ["length"]})
    assert limits_of(bad, settings=without).failing(bad) == ()


def test_candidates_are_compared_by_embeddings_if_the_filters_are() -> None:
    settings = ExamSection.model_validate({"embedding": "x"})
    directions = {CHOICES[0]: (1.0, 0.0, 0.0), CHOICES[1]: (0.0, 1.0, 0.0), CHOICES[2]: (0.01, 1.0, 0.0)}

    def embed(texts: object) -> np.ndarray:
        return np.array([directions.get(text, (0.6, 0.0, 0.8)) for text in texts], np.float32)  # type: ignore[attr-defined]

    bad = question()
    limits = CandidateLimits.of(apply([bad], settings, embed), settings, embed)
    # The fourth one is as close to the passage as possible, by 0.4 closer than the right one.
    assert limits.failing(bad) == (2, 3)


@pytest.mark.parametrize(
    ("changes", "mendable"),
    [
        ({}, True),
        ({"stem": "According to the passage, what does a heat pump move from the cold air outside?"}, False),
        ({"stem": "What moves?"}, False),
    ],
)
def test_only_questions_without_other_problems_can_be_repaired(
    changes: dict[str, str], mendable: bool
) -> None:
    bad = question(choices=(CHOICES[0], CHOICES[1], COPIED, CHOICES[3]), **changes)  # type: ignore[arg-type]
    filtered = apply([bad], SETTINGS)
    assert can_be_mended(bad, filtered.reasons(0), limits_of(bad)) is mendable


def test_good_questions_and_too_long_right_candidates_are_not_sent_to_the_model() -> None:
    assert not can_be_mended(question(), {}, limits_of(question()))
    settings = ExamSection.model_validate({"max_choice": 20})
    bad = question()
    assert not can_be_mended(bad, apply([bad], settings).reasons(0), limits_of(bad, settings=settings))


def test_the_prompt_has_the_question_and_the_candidates_that_must_not_return() -> None:
    bad = question(choices=(CHOICES[0], CHOICES[1], COPIED, CHOICES[3]), title="Pumps {number}")
    text = prompt(bad, (2,), ("Cold sea water",), "manuals")
    assert "from manuals: Pumps {number}\nA heat pump moves" in text
    assert f"Right answer: {CHOICES[0]}\nWrong answers:\n- {CHOICES[1]}\n- {CHOICES[3]}\nWrite 4 more" in text
    assert f"must not come again:\n- {COPIED}\n- Cold sea water\n" in text
    assert text.endswith("### Assistant:")


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        ("Sure, here they are:\n- One thing\n- Another\n", ("One thing", "Another")),
        ("1. One thing\n2) Another\n", ("One thing", "Another")),
        ("A) One thing\r\n(B) **Another**", ("One thing", "Another")),
        ('<think>- no\n</think>* "One thing"\n* One thing\n- ...', ("One thing",)),
        ("<think>- no", ()),
        ("I cannot do that.", ()),
    ],
)
def test_candidates_are_parsed_from_lists(answer: str, texts: tuple[str, ...]) -> None:
    assert read_candidates(answer) == texts


@given(st.lists(st.text("ab -\n*1.)", max_size=12), max_size=5))
def test_any_output_is_read_as_one_line_candidates_with_words(lines: list[str]) -> None:
    for text in read_candidates("\n".join(lines)):
        assert "\n" not in text
        assert any(letter.isalnum() for letter in text)


def test_passing_candidates_replace_failed_ones_and_the_rest_stays() -> None:
    bad = question(choices=(CHOICES[0], CHOICES[1], COPIED, CHOICES[3]))
    offered = (COPIED, "power for its compressor", CHOICES[1].upper(), "Smoke from a chimney", "Sand")
    mended = refilled(bad, offered, limits_of(bad))
    assert mended is not None
    assert mended.choices == (CHOICES[0], CHOICES[1], "Smoke from a chimney", CHOICES[3])
    assert (mended.question_id, mended.correct, mended.question) == (bad.question_id, 0, bad.question)
    assert passes_filters(mended)


def test_with_too_few_good_candidates_the_question_is_unchanged() -> None:
    bad = question(choices=(CHOICES[0], COPIED, f"The {COPIED}", CHOICES[3]))
    assert limits_of(bad).failing(bad) == (1, 2)
    assert refilled(bad, ("Smoke from a chimney",), limits_of(bad)) is None
    assert refilled(bad, (), limits_of(bad)) is None
    both = refilled(bad, ("Smoke from a chimney", "Sand of the sea"), limits_of(bad))
    assert both is not None
    assert both.choices == (CHOICES[0], "Smoke from a chimney", "Sand of the sea", CHOICES[3])
