"""Wrong candidates that fail a filter, prompts for replacements, and their selection."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.bank.likeness import folded, words
from trecexam.extensions.exams.exam_file import ExamQuestion
from trecexam.extensions.exams.questions.filters import Filtered
from trecexam.extensions.exams.questions.similarity import bag, in_passage, jaccard
from trecexam.extensions.exams.settings import ExamSection, FilterName
from trecexam.graders.replies import read_reply
from trecexam.templates import filled

if TYPE_CHECKING:
    from trecexam.extensions.exams.questions.similarity import Embed

#: Extra candidates to request, because some will fail the filters again.
_SPARE = 3
_LINE = re.compile(r"[ \t]*(?:[-*\u2022+\u2013]|\(?[A-Za-z][).]|\d{1,2}[).:])[ \t]+(?P<text>\S.*)")


@dataclass(frozen=True)
class CandidateLimits:
    """The limits for wrong candidates of the filters that were used.

    Attributes:
        thresholds: of the filters that compare candidates.
        settings: for lengths.
        has_lengths: whether these are looked at.
        embed: for the filters that compare by embeddings.
    """

    thresholds: Mapping[str, float]
    settings: ExamSection
    has_lengths: bool = True
    embed: Embed | None = None

    @classmethod
    def of(cls, filtered: Filtered, settings: ExamSection, embed: Embed | None) -> CandidateLimits:
        """The limits with which an exam was filtered, a share's threshold included."""
        thresholds: dict[str, float] = {
            name: result.threshold
            for name, result in filtered.results.items()
            if "-candidate-" in name and result.threshold is not None
        }
        return cls(thresholds, settings, "length" in filtered.results, embed)

    def failing(self, question: ExamQuestion) -> tuple[int, ...]:
        """The indices of the wrong candidates that fail, in order.

        Of two wrong ones that are close the later one fails; beside the right one the wrong one.
        """
        failing_indices = {
            choice_index for choice_index, choice in enumerate(question.choices) if not self.fits(choice)
        }
        for how in ("jaccard", "embedding"):
            outside, inside = (self.thresholds.get(f"{side}-candidate-{how}") for side in ("extra", "intra"))
            if outside is None and inside is None:
                continue
            to_passage, close = self._compared(question, how)
            if outside is not None:
                right = to_passage[question.correct]
                failing_indices |= {n for n, value in enumerate(to_passage) if value - right > outside + 1e-9}
            for first, second in combinations(range(len(question.choices)), 2):
                if inside is not None and close(first, second) > inside + 1e-9:
                    failing_indices.add(first if second == question.correct else second)
        return tuple(sorted(failing_indices - {question.correct}))

    def fits(self, choice: str) -> bool:
        """Whether a candidate is neither too short nor too long."""
        least, most = self.settings.min_choice, self.settings.max_choice
        return not self.has_lengths or least <= len(choice.strip()) <= most

    def _compared(
        self, question: ExamQuestion, how: str
    ) -> tuple[Sequence[float], Callable[[int, int], float]]:
        """The similarity of each candidate to the passage, and of each pair of candidates."""
        if how == "jaccard":
            bags = [bag(choice) for choice in question.choices]
            return (
                in_passage(question.choices, question.documentation),
                lambda first, second: jaccard(bags[first], bags[second]),
            )
        assert self.embed is not None
        *vectors, passage = self.embed([*question.choices, question.documentation])
        return (
            [float(vector @ passage) for vector in vectors],
            lambda first, second: float(vectors[first] @ vectors[second]),
        )


def can_be_mended(question: ExamQuestion, reasons: Mapping[FilterName, str], limits: CandidateLimits) -> bool:
    """Whether new wrong candidates are enough to keep a question."""
    other_filters = [name for name in reasons if "-candidate-" not in name and name != "length"]
    if other_filters or not limits.failing(question):
        return False
    least, most = limits.settings.min_question, limits.settings.max_question
    return "length" not in reasons or (
        least <= len(question.question.strip()) <= most and limits.fits(question.choices[question.correct])
    )


def prompt(
    question: ExamQuestion,
    failing: Sequence[int],
    refused: Sequence[str],
    task_domain: str,
    plain: Callable[[str], str] = str,
) -> str:
    """The prompt for candidates to replace failing ones; our own, since none is published.

    Args:
        refused: what it wrote before that would not do.
        plain: applied to what is filled in, such as the removal of control tokens.
    """
    title = str(question.rest.get("title") or "")
    good = [
        choice
        for choice_index, choice in enumerate(question.choices)
        if choice_index != question.correct and choice_index not in failing
    ]
    bad = [question.choices[choice_index] for choice_index in failing] + list(refused)
    values = {
        "task_domain": task_domain,
        "documentation": f"{title}\n{question.documentation}" if title else question.documentation,
        "question": question.question,
        "answer": question.choices[question.correct],
        "wrong": "\n".join(f"- {choice}" for choice in good) or "(none yet)",
        "number": str(len(failing) + _SPARE),
        "refused": "\n".join(f"- {choice}" for choice in bad),
    }
    return filled(
        _template(), {name: plain(value) for name, value in values.items()}, jinja=False, name="distractors"
    )


@cache
def _template() -> str:
    path = Path(__file__).parent / "texts" / "distractors.txt"
    return path.read_text(encoding="utf-8").removesuffix("\n")


def read_candidates(answer: str, *, cut: bool = False) -> tuple[str, ...]:
    """The candidates in an answer, one per line after a hyphen, number or letter; () for none.

    Args:
        cut: the model was stopped before its end, within the last line.
    """
    lines = read_reply(answer, cut=cut).text.replace("\r\n", "\n").split("\n")
    lines = lines[:-1] if cut else lines
    texts = (match["text"] for line in lines if (match := _LINE.fullmatch(line)))
    plain = (" ".join(text.replace("**", "").split()).strip('"') for text in texts)
    return tuple(dict.fromkeys(text for text in plain if words(text)))


def refilled(question: ExamQuestion, offered: Sequence[str], limits: CandidateLimits) -> ExamQuestion | None:
    """The question with offered candidates in place of failing ones; None if these fail, too.

    The right candidate stays at its place. Each offered one that does not fail itself is used once, in the
    order in which they come.
    """
    folded_choices = {folded(choice) for choice in question.choices}
    for text in offered:
        failing = limits.failing(question)
        if not failing:
            break
        if folded(text) in folded_choices:
            continue
        choices = list(question.choices)
        choices[failing[0]] = text
        tried = replace(question, choices=tuple(choices))
        if failing[0] not in limits.failing(tried):
            question = tried
            folded_choices.add(folded(text))
    return None if limits.failing(question) else question
