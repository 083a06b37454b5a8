"""The prompts of an examinee: the published answering prompts, closed-book, with documents, with examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Literal

from trecexam.errors import TrecexamError
from trecexam.extensions.exams.exam_file import LETTERS, ExamQuestion

#: Introductions of the context: the question's passage, or retrieved documents.
ContextKind = Literal["oracle", "retrieved"]
_HEADS: Mapping[ContextKind, str] = {"oracle": "Context:", "retrieved": "Retrieved Documents:\n"}
#: The end of a prompt, as published, without a colon; an answer follows after a blank.
CUE = "###Assistant: Correct answer"


def candidates(question: ExamQuestion, plain: Callable[[str], str] = str) -> tuple[str, ...]:
    """Return the candidates with their letters, in the form of the prompt and of answers."""
    return tuple(
        f"{letter}) {plain(choice)}" for letter, choice in zip(LETTERS, question.choices, strict=True)
    )


def prompt(
    question: ExamQuestion,
    context: str = "",
    kind: ContextKind = "oracle",
    examples: Sequence[ExamQuestion] = (),
    plain: Callable[[str], str] = str,
) -> str:
    """Return the prompt, up to where the answer begins.

    Args:
        context: the passage or the documents; "" asks closed-book.
        examples: questions with right answers to put first, closed-book, since their passages would not fit.
        plain: cleans filled-in texts, for example of control tokens.
    """
    answered_examples = [
        f"{_asked(example, '', plain)} {candidates(example, plain)[example.correct]}" for example in examples
    ]
    knowledge = f"{_HEADS[kind]}{plain(context)}\n\n" if context else ""
    return "\n\n".join([*answered_examples, _asked(question, knowledge, plain)])


def _asked(question: ExamQuestion, knowledge: str, plain: Callable[[str], str]) -> str:
    lines = "\n".join(candidates(question, plain))
    return f"###Human: Question: {plain(question.question)}\n\n{knowledge}Candidates:\n{lines}\n\n{CUE}"


def examples_for(
    questions: Sequence[ExamQuestion], number: int, seed: int
) -> Callable[[ExamQuestion], tuple[ExamQuestion, ...]]:
    """Return a function from a question to its in-context examples: a seeded draw without the question."""
    if number and len(questions) <= number:
        raise TrecexamError(f"{number} examples need an exam of {number + 1} questions or more")
    drawn = Random(f"{seed}").sample(range(len(questions)), min(number + 1, len(questions))) if number else []

    def chosen(question: ExamQuestion) -> tuple[ExamQuestion, ...]:
        candidates_drawn = (questions[question_index] for question_index in drawn)
        return tuple(each for each in candidates_drawn if each.question_id != question.question_id)[:number]

    return chosen
