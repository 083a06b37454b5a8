"""Multiple-choice questions: parsing, their levels and types, and which are removed."""

from __future__ import annotations

import json
import re
import time
from collections import Counter

import pytest
from exams import CHOICES, STEM, question
from hypothesis import example, given
from hypothesis import strategies as st
from outside import outside

from trecexam.extensions.exams.filtering import (
    _PATTERNS,
    not_self_contained,
    read_patterns,
)
from trecexam.extensions.exams.questions.reading import Read, read_question, shuffled
from trecexam.extensions.exams.questions.words import bloom_levels, bloom_words, question_type, question_types
from trecexam.graders.replies import Unread

RIGHT = Read(STEM, CHOICES, 1)
BODY = f"{STEM}\nA) {CHOICES[0]}\nB) {CHOICES[1]}\nC) {CHOICES[2]}\nD) {CHOICES[3]}\n"

MARKS = (
    "{})",
    "{}.",
    "({})",
    "[{}]",
    "{}:",
    "**{})**",
    "**{}.**",
    "- {})",
    "* {}.",
    "Option {}:",
    "**Candidate {}.**",
)
ANSWERS = (
    "Answer: {}",
    "answer: {}.",
    "Correct Answer: {}",
    "**Correct Answer:** {}",
    "**Correct Answer: {}**",
    "*Answer:* ({})",
    "Answer:\n\n{}",
    "The correct answer is {}.",
    "The correct answer is: **{})** as it says so.",
    "The correct answer is option {}, because it says so.",
    "Answer key: {})",
    "### Answer\n\nThe right choice is {} because of that.",
)


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("letters", ["ABCD", "abcd", "1234"])
def test_the_usual_forms_are_read(mark: str, answer: str, letters: str) -> None:
    lines = [f"{mark.format(letter)} {text}" for letter, text in zip(letters, CHOICES, strict=True)]
    told = "\n".join(
        ["Question: " + STEM, *lines, "", answer.format(letters[1]), "", "Explanation: as told."]
    )
    assert read_question(told) == RIGHT


@pytest.mark.parametrize(
    "told",
    [
        # The published syntax, to the letter.
        f"Question: {STEM}\nA){CHOICES[0]}\nB){CHOICES[1]}\nC){CHOICES[2]}\nD){CHOICES[3]} Correct Answer: B",
        f"### Human: Question: {{question}}\n### Assistant: Question: {BODY}Correct Answer: B",
        f"<think>A) or B)? Answer: C</think>{BODY}Answer: B",
        f"{BODY}Correct Answer: {{B}}",
        f"Sure! Here is a difficult question:\n\n{BODY}Answer: B",
        f"## Multiple choice question 1\n\n{BODY}\n**Answer:** B) {CHOICES[1]}",
        f"1. {BODY}Answer: B",
        f"```\n{BODY}Answer: B\n```",
        f"{BODY}Answer: {CHOICES[1]}.",
        f"{BODY}B) is the correct answer. A is not correct.",
        f"{BODY}Answer: B\n\nQuestion 2: {BODY}Answer: D",
        f"{BODY}Answer: B\n\nExplanation: A) is wrong. B) is right. The answer is not C.",
        BODY.replace(CHOICES[1], CHOICES[1] + " (correct)"),
        BODY.replace("\n", "\r\n") + "Answer: B",
        BODY.replace("\n", " ") + "Answer: B",
        BODY.replace(STEM, f"{STEM}\n\nCandidates:") + "Answer: B",
        BODY.replace(CHOICES[0], "\n   Heat that is\n   in the air") + "Answer: B",
        BODY.replace("\nB)", "\nExplanation: no.\nB)") + "Answer: B",
        f"{STEM} (A) {CHOICES[0]} (B) {CHOICES[1]} (C) {CHOICES[2]} (D) {CHOICES[3]}. Answer: (B)",
        f"{BODY}Answer: B\n1. one\n2. two\n3. three\n4. four",
    ],
)
def test_unusual_forms_are_read_too(told: str) -> None:
    found = read_question(told)
    assert isinstance(found, Read), found
    assert found._replace(choices=tuple(choice.rstrip(".") for choice in found.choices)) == RIGHT


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("", "empty answer"),
        ("<think>A) B) C) D)", "ends early: raise `max_new_tokens`"),
        ("I cannot do that.", "no four candidates"),
        (f"{STEM}\nA) a1\nB) b1\nC) c1\nAnswer: B", "no four candidates"),
        (f"{BODY}E) None of them\nAnswer: B", "more than four candidates"),
        (BODY.replace(STEM, "Question:") + "Answer: B", "no question"),
        (BODY.replace(STEM, STEM[:-1] + ".") + "Answer: B", "question without a question mark at its end"),
        (BODY.replace(STEM, "What is a heat pump?") + "Answer: B", "question too short"),
        (BODY.replace(CHOICES[3], "") + "Answer: B", "a candidate without text"),
        (BODY.replace(CHOICES[0], "{candidate A}") + "Answer: B", "a candidate without text"),
        (BODY, "no answer letter"),
        (f"{BODY}answer: because of the air", "no answer letter"),
        (f"{BODY}Answer: A pump that is warm", "no answer letter"),
        (f"{BODY}Answer: 2 pumps", "no answer letter"),
        (f"{BODY}Answer: E", "no answer letter"),
        (f"{BODY}The answer is not B.", "no answer letter"),
        (f"{BODY}Answer: B and C", "more than one right answer"),
        (f"{BODY}Answer: B\nThe correct answer is C.", "more than one right answer"),
        (f"{BODY}Answer: B) {CHOICES[2]}", "more than one right answer"),
    ],
)
def test_text_without_a_question_is_reported_with_a_reason(told: str, reason: str) -> None:
    assert read_question(told) == Unread(reason)


def test_an_article_at_the_start_of_the_right_candidate_is_not_its_letter() -> None:
    told = f"{STEM}\nA) The sun\nB) A heat pump\nC) Two pumps\nD) None\nCorrect Answer: A heat pump"
    assert read_question(told) == Read(STEM, ("The sun", "A heat pump", "Two pumps", "None"), 1)
    told = told.replace("Answer: A heat pump", "Answer: A The sun")
    assert read_question(told)[2] == 0


def test_a_stem_has_at_least_50_characters_as_published() -> None:
    for length, kind in ((50, Read), (49, Unread)):
        told = BODY.replace(STEM, "x" * (length - 1) + "?") + "Answer: B"
        assert isinstance(read_question(told), kind)


TEXT = st.lists(
    st.text("abcdefghij ,-\u00e9", min_size=3, max_size=20).filter(lambda text: re.search(r"\w\w", text)),
    min_size=4,
    max_size=4,
)


@given(TEXT, st.integers(0, 3), st.sampled_from(["{})", "({})", "**{}.**"]), st.sampled_from(ANSWERS[:8]))
def test_a_written_question_is_read_back(texts: list[str], correct: int, mark: str, answer: str) -> None:
    choices = tuple(" ".join(f"x{text}y".split()) for text in texts)
    lines = [f"{mark.format(x)} {choice}" for x, choice in zip("ABCD", choices, strict=True)]
    told = "\n".join([STEM, *lines, answer.format("ABCD"[correct])])
    assert read_question(told) == Read(STEM, choices, correct)


@given(st.text("ABCDabcd1234)(.: \n*?Answer is correct", max_size=300))
@example("A)\nB)\nC)\nD)")
@example("Question: ?\nA) a\nB) b\nC) c\nD) d\nAnswer: A")
def test_any_text_gives_a_whole_question_or_a_reason(text: str) -> None:
    found = read_question("x" * 49 + text)
    if isinstance(found, Unread):
        assert found.reason
    else:
        assert found.question.rstrip("\"')\u201d").endswith("?")
        assert len(found.choices) == 4
        assert all(re.search(r"\w", choice) for choice in found.choices)
        assert found.correct in range(4)


@pytest.mark.parametrize(
    "piece", ["A)", "\n", " ", "**", "*a", "Answer: ", "Question ", "(", "A is ", "1.\n", "\n "]
)
def test_reading_takes_bounded_time_on_repeated_text(piece: str) -> None:
    text = BODY + piece * (20_000 // len(piece))
    start = time.process_time()
    read_question(text)
    read_question(piece * (20_000 // len(piece)) + BODY)
    assert time.process_time() - start < 2


@given(st.integers(0, 3), st.integers(0, 99), st.text(max_size=5))
def test_shuffling_keeps_the_right_candidate_and_returns_the_order(correct: int, seed: int, key: str) -> None:
    read = Read(STEM, CHOICES, correct)
    found, order = shuffled(read, seed, key)
    assert found.choices[found.correct] == CHOICES[correct]
    assert found.choices == tuple(CHOICES[place] for place in order)
    assert shuffled(read, seed, key) == (found, order)


def test_all_orders_are_equally_likely() -> None:
    counts = Counter(shuffled(RIGHT, 0, str(number))[1] for number in range(4_800))
    assert len(counts) == 24
    assert max(abs(count - 200) for count in counts.values()) < 60


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


# Which questions are removed.


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
    ],
)
def test_a_stem_that_refers_to_its_text_is_removed(stem: str) -> None:
    assert list(not_self_contained([question(stem=stem)])) == [0]


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
    assert not not_self_contained([question(stem=stem)])


def test_the_published_patterns_are_included() -> None:
    published = read_patterns(outside("prompts/self-contained.txt"))
    assert read_patterns(_PATTERNS)[: len(published)] == published
