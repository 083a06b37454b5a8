"""Which questions are removed: each filter alone, at its threshold, against a naive computation."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest
from exams import CHOICES, PASSAGE, question
from hypothesis import given
from hypothesis import strategies as st
from outside import outside

from trecexam.extensions.exams.exam_file import ExamQuestion
from trecexam.extensions.exams.questions import filters, similarity
from trecexam.extensions.exams.questions.filters import apply, read_patterns
from trecexam.extensions.exams.questions.statistics import (
    QuestionKind,
    description,
    fixed_answer,
    longest_answer,
)
from trecexam.extensions.exams.settings import ExamSection

ALL = ExamSection.model_validate({})
#: Five words, so that texts often share some.
WORDS = st.lists(st.sampled_from(["heat", "pump", "Air", "cold", "house."]), max_size=7).map(" ".join)


def settings_for(name: str, **more: object) -> ExamSection:
    return ExamSection.model_validate({"without": [n for n in filters.FILTERS if n != name], **more})


def failed_filters(questions: Sequence[ExamQuestion], section: ExamSection = ALL) -> list[list[str]]:
    found = apply(questions, section)
    return [list(found.reasons(place)) for place in range(len(questions))]


def bag_jaccard(one: list[str], two: list[str]) -> float:
    every = set(one) | set(two)
    shared = sum(min(one.count(word), two.count(word)) for word in every)
    union = sum(max(one.count(word), two.count(word)) for word in every)
    return shared / union if union else 0.0


def tokens(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def test_a_good_question_is_kept() -> None:
    assert failed_filters([question()]) == [[]]


@pytest.mark.parametrize(
    "stem",
    [
        "According to the documentation, what does a heat pump need to run?",
        "What is the main result that the authors of this work present here?",
        'What is a pump\'s duty, as discussed in "Pumps and Their Ways" at length?',
        "What is a pump\u2019s duty, as one reads of the \u201cHandbook of Pumps\u201d by Ada?",
        "As described in section three, how is the outer coil defrosted in winter?",
        "Which of these is the reason that is mentioned above for the loud noise?",
        "What does this passage say on how the outer coil is defrosted in winter?",
        "Based on the text, how long does it take to defrost the outer coil at all?",
        "In this PAPER, which of the coils is the one that is defrosted in winter?",
    ],
)
def test_a_stem_that_refers_to_its_text_is_removed(stem: str) -> None:
    assert failed_filters([question(stem=stem)]) == [["self-contained"]]


@pytest.mark.parametrize(
    "stem",
    [
        "Which of the following is the part of a heat pump that needs electric power?",
        "Which abstract class does the document object model of a browser define first?",
        "What context does an electrician need before opening the section of a pump?",
        "Which newspapers reported that researchers had paperless offices that year?",
    ],
)
def test_a_self_contained_stem_is_kept(stem: str) -> None:
    assert failed_filters([question(stem=stem)]) == [[]]


def test_the_published_patterns_are_included() -> None:
    published = read_patterns(outside("prompts/self-contained.txt"))
    assert read_patterns(filters._PATTERNS)[: len(published)] == published


def test_lengths_are_allowed_up_to_and_including_their_bounds() -> None:
    section = settings_for("length", min_question=10, max_question=12, min_choice=2, max_choice=4)
    sizes = [(9, 3), (10, 3), (12, 3), (13, 3), (11, 1), (11, 2), (11, 4), (11, 5)]
    made = [
        question(n, "q" * stem, ["abc", "abd", "abe", "c" * size]) for n, (stem, size) in enumerate(sizes)
    ]
    assert [bool(each) for each in failed_filters(made, section)] == [
        True,
        False,
        False,
        True,
        True,
        False,
        False,
        True,
    ]


@given(st.lists(WORDS, min_size=4, max_size=4), WORDS, st.integers(0, 3))
def test_similarities_to_the_passage_equal_a_naive_search(
    choices: list[str], passage: str, correct: int
) -> None:
    n = max(1, sum(len(tokens(choice)) for choice in choices) // 4)
    told = tokens(passage)
    windows = [told[start : start + n] for start in range(len(told) - n + 1)] or [told]
    wanted = [max(bag_jaccard(tokens(choice), window) for window in windows) for choice in choices]
    assert similarity.in_passage(choices, passage) == pytest.approx(wanted)
    made = question(choices=choices, correct=correct, documentation=passage)
    most = max(value for place, value in enumerate(wanted) if place != correct)
    assert similarity.extra_jaccard(made) == pytest.approx(most - wanted[correct])


def test_a_wrong_candidate_may_be_closer_to_the_passage_by_at_most_the_threshold() -> None:
    # n is 2; "cold air" stands in the passage, of "warm river" one word of two does, with another beside it.
    made = question(choices=["warm river", "cold air", "xx yy", "zz ww"])
    assert similarity.extra_jaccard(made) == pytest.approx(1 - 1 / 3)
    name = "extra-candidate-jaccard"
    assert failed_filters([made], settings_for(name, extra_candidate_jaccard=2 / 3)) == [[]]
    assert failed_filters([made], settings_for(name, extra_candidate_jaccard=0.66)) == [[name]]


def test_questions_with_equivalent_candidates_are_removed() -> None:
    name = "intra-candidate-jaccard"
    made = [question(correct=c, choices=["One is it", "is it one?", "two", "three"]) for c in range(4)]
    assert failed_filters(made, settings_for(name)) == [[name]] * 4
    # "By 10 percent" and "by 20 percent" are valid candidates; blanks and punctuation alone are not.
    fair = question(choices=["It rises by 10 percent", "It rises by 20 percent", "It falls", "It stays"])
    assert failed_filters([fair], settings_for(name)) == [[]]
    assert failed_filters([question(choices=["?", "?", "a", "b"])], settings_for(name)) == [[name]]
    assert failed_filters([question(choices=["+", "-", "*", "/"])], settings_for(name)) == [[]]


def test_near_duplicates_are_removed_and_the_first_good_one_is_kept() -> None:
    stems = [
        "What does a heat pump take from the air outside?",
        "What does a heat pump take from the air, outside",
        "What does the heat pump take from the air outside?",
        "How is frost on the coil of a pump melted in winter?",
    ]
    made = [question(n, stem) for n, stem in enumerate(stems)]
    assert failed_filters(made, settings_for("duplicates")) == [[], ["duplicates"], ["duplicates"], []]
    # The first one is too short, so the second one stays.
    section = ExamSection.model_validate(
        {"min_question": 1, "without": ["length", "extra-candidate-jaccard"]}
    )
    made[0] = question(0, stems[0], ["same", "same", *CHOICES[2:]])
    found = apply(made, section)
    assert [each.question_id for each in found.kept] == ["x1", "x3"]


def test_stems_that_differ_in_numbers_are_not_duplicates() -> None:
    stems = [
        "How much heat does the pump give at 3 bar?",
        "How much heat does the pump give at 34 bar?",
        "How much heat does the pump give, at 3 bar?",
        "How much heat does the pump give at any bar?",
    ]
    made = [question(n, stem) for n, stem in enumerate(stems)]
    assert failed_filters(made, settings_for("duplicates", duplicates=0.8)) == [[], [], ["duplicates"], []]


def test_duplicates_across_blocks_equal_a_comparison_of_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    from rapidfuzz import fuzz

    generator = np.random.default_rng(4)
    stems = [" ".join(generator.choice(["heat", "pump", "air", "cold"], 4)) for _ in range(60)]
    kept: list[str] = []
    for stem in stems:
        if all(fuzz.ratio(stem, other) < 85 for other in kept):
            kept.append(stem)
    monkeypatch.setattr(filters, "_BLOCK", 7)
    made = [question(number, stem) for number, stem in enumerate(stems)]
    assert [each.question for each in apply(made, settings_for("duplicates", duplicates=0.85)).kept] == kept
    assert 1 < len(kept) < 60


def test_embeddings_compare_candidates_with_the_passage_and_with_one_another() -> None:
    angles = {"p": 0.0, "near": 0.1, "far": 1.2, "right": 0.5, "other": 2.0}

    def embed(texts: Sequence[str]) -> np.ndarray:
        return np.array([(np.cos(angles[text]), np.sin(angles[text])) for text in texts], np.float32)

    made = question(choices=["near", "far", "right", "other"], correct=2, documentation="p")
    outside, inside = similarity.by_embedding([made], embed)
    assert outside == pytest.approx([np.cos(0.1) - np.cos(0.5)], abs=1e-6)
    assert inside == pytest.approx([np.cos(0.4)], abs=1e-6)
    section = ExamSection.model_validate(
        {"extra_candidate_embedding": 0.1, "intra_candidate_embedding": 0.9, "without": ["length"]}
    )
    found = list(apply([made], section, embed).reasons(0))
    assert found == ["extra-candidate-embedding", "intra-candidate-embedding"]


def test_baselines_are_the_scores_of_guessing_without_reading() -> None:
    made = [
        question(0, choices=["a", "bb", "c", "d"], correct=1),
        question(1, choices=["aa", "bb", "c", "d"], correct=1),
        question(2, choices=["a", "bb", "c", "dddd"], correct=0),
        question(3, choices=["a", "bb", "c", "d"], correct=3),
    ]
    assert fixed_answer(made) == ("B", 0.5)
    assert longest_answer(made) == pytest.approx((1 + 0.5) / 4)


def test_lengths_are_means_over_questions_and_levels_are_counted() -> None:
    made = [question(0, "abc", ["a", "bb", "c", "dddd"], 3, "12345"), question(1, "a", ["a"] * 4, 0, "123")]
    found = description(made, [QuestionKind((), "what"), QuestionKind(("Applying", "Creating"), "how")])
    assert found["mean_length"] == {"question": 2, "choice": 1.5, "correct": 2.5, "documentation": 4}
    assert {level: n for level, n in found["bloom"].items() if n} == {"Applying": 1, "Creating": 1, "none": 1}
    assert {name: n for name, n in found["question_types"].items() if n} == {"what": 1, "how": 1}


def test_an_empty_exam_has_no_baselines() -> None:
    assert description([], []) == {"questions": 0}


@given(st.lists(st.tuples(WORDS, st.lists(WORDS, min_size=4, max_size=4)), min_size=1, max_size=8))
def test_each_filter_finds_the_same_alone_and_among_others(rows: list[tuple[str, list[str]]]) -> None:
    made = [question(n, stem, choices, documentation=PASSAGE) for n, (stem, choices) in enumerate(rows)]
    found = apply(made, ALL)
    for name in found.results:
        if name != "duplicates":
            assert apply(made, settings_for(name)).results[name] == found.results[name]
