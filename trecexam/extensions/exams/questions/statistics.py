"""Kinds of questions, and the accuracy of trivial strategies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from trecexam.extensions.exams.exam_file import LETTERS, ExamQuestion
from trecexam.extensions.exams.questions.words import bloom_levels, question_type


@dataclass(frozen=True)
class QuestionKind:
    """A question's Bloom levels (often none) and its type."""

    bloom: tuple[str, ...]
    question_type: str

    @classmethod
    def of(cls, question: ExamQuestion) -> QuestionKind:
        """The kind of a question, from its stem."""
        return cls(bloom_levels(question.question), question_type(question.question))


def fixed_answer(questions: Sequence[ExamQuestion]) -> tuple[str, float]:
    """The most frequent right letter, and the accuracy of always answering it."""
    counts = Counter(question.letter for question in questions)
    letter = max(LETTERS, key=lambda each: counts[each])
    return letter, counts[letter] / len(questions)


def longest_answer(questions: Sequence[ExamQuestion]) -> float:
    """The accuracy of always choosing the longest candidate, in characters; ties at random.

    The released code counts ties as right.
    """
    rights = 0.0
    for question in questions:
        lengths = [len(choice) for choice in question.choices]
        if lengths[question.correct] == max(lengths):
            rights += 1 / lengths.count(max(lengths))
    return rights / len(questions)
