"""Statistics of an exam: accuracy of trivial strategies, lengths, levels and types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trecexam.extensions.exams.exam_file import LETTERS, ExamQuestion
from trecexam.extensions.exams.questions.filters import Filtered
from trecexam.extensions.exams.questions.words import bloom_levels, bloom_words, question_type, question_types


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


def description(questions: Sequence[ExamQuestion], kinds: Sequence[QuestionKind]) -> dict[str, Any]:
    """Baselines (0..1), mean lengths in characters, and counts of levels and types."""
    if not questions:
        return {"questions": 0}
    letter, accuracy = fixed_answer(questions)
    number = len(questions)
    levels = Counter(level for kind in kinds for level in kind.bloom or ("none",))
    types = Counter(kind.question_type for kind in kinds)
    return {
        "questions": number,
        "fixed_answer": {"letter": letter, "accuracy": accuracy},
        "longest_answer": {"accuracy": longest_answer(questions)},
        "mean_length": {
            "question": sum(len(each.question) for each in questions) / number,
            "choice": sum(len(choice) for each in questions for choice in each.choices)
            / (number * len(LETTERS)),
            "correct": sum(len(each.choices[each.correct]) for each in questions) / number,
            "documentation": sum(len(each.documentation) for each in questions) / number,
        },
        "bloom": {level: levels[level] for level in (*bloom_words(), "none")},
        "question_types": {name: types[name] for name in question_types()},
    }


def filter_counts(filtered: Filtered) -> dict[str, dict[str, Any]]:
    """For each filter: the number of questions that it removes, and that only it removes."""
    question_indices = range(len(filtered.questions))
    reasons = [filtered.reasons(question_index) for question_index in question_indices]
    return {
        name: {
            "dropped": len(result.reasons),
            "alone": sum(list(each) == [name] for each in reasons),
            **({} if result.threshold is None else {"threshold": result.threshold}),
        }
        for name, result in filtered.results.items()
    }
