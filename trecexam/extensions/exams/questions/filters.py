"""Filters of an exam's questions, with reasons. Each filter checks all questions.

Only `duplicates` looks at what the others leave: of two questions with like stems, the first one that is
otherwise good stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.bank.likeness import words
from trecexam.extensions.exams.exam_file import ExamQuestion
from trecexam.extensions.exams.questions import similarity
from trecexam.extensions.exams.settings import FILTERS, ExamSection, FilterName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trecexam.extensions.exams.questions.similarity import Embed

_PATTERNS = Path(__file__).parent / "texts" / "self-contained.txt"
#: Stems compared at once.
_BLOCK = 512
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class FilterResult:
    """Result of a filter.

    Attributes:
        reasons: place of a question -> why it goes.
        threshold: what was used; None where the filter has none.
    """

    reasons: Mapping[int, str]
    threshold: float | None = None


@dataclass(frozen=True)
class Filtered:
    """Results of all filters.

    Attributes:
        questions: all, in their order.
        results: of the filters that were used.
    """

    questions: tuple[ExamQuestion, ...]
    results: Mapping[FilterName, FilterResult] = field(default_factory=dict)

    def reasons(self, question_index: int) -> dict[FilterName, str]:
        """The reasons for leaving out a question, by filter; empty if it is kept."""
        return {
            name: result.reasons[question_index]
            for name, result in self.results.items()
            if question_index in result.reasons
        }

    @property
    def kept(self) -> tuple[ExamQuestion, ...]:
        """The kept questions."""
        return tuple(
            each for question_index, each in enumerate(self.questions) if not self.reasons(question_index)
        )


def apply(questions: Sequence[ExamQuestion], settings: ExamSection, embed: Embed | None = None) -> Filtered:
    """Applies the filters.

    Args:
        embed: for the embedding filters, which are not used without.
    """
    off = set(settings.without)
    results: dict[FilterName, FilterResult] = {}
    if "self-contained" not in off:
        results["self-contained"] = _self_contained(questions, read_patterns(_PATTERNS))
    if "length" not in off:
        results["length"] = _length(questions, settings)
    scores: dict[FilterName, list[float]] = {
        "extra-candidate-jaccard": [similarity.extra_jaccard(each) for each in questions]
    }
    if embed is not None:
        outside, inside = similarity.by_embedding(questions, embed)
        scores["extra-candidate-embedding"] = outside
    scores["intra-candidate-jaccard"] = [similarity.intra_jaccard(each) for each in questions]
    if embed is not None:
        scores["intra-candidate-embedding"] = inside
    for name, values in scores.items():
        if name not in off:
            results[name] = _scored(name, values, settings)
    if "duplicates" not in off:
        dropped = {question_index for result in results.values() for question_index in result.reasons}
        results["duplicates"] = _duplicates(questions, dropped, settings.duplicates)
    return Filtered(tuple(questions), {name: results[name] for name in FILTERS if name in results})


def read_patterns(path: Path) -> list[re.Pattern[str]]:
    """Reads regular expressions from a file, one per line; lines that begin with # are comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    patterns = (line.strip() for line in lines if line.strip() and not line.startswith("#"))
    return [re.compile(pattern, re.IGNORECASE) for pattern in patterns]


def _self_contained(questions: Sequence[ExamQuestion], patterns: Sequence[re.Pattern[str]]) -> FilterResult:
    reasons: dict[int, str] = {}
    for question_index, question in enumerate(questions):
        # Typographic quotes are quotes, too.
        stem = re.sub("[\u201c\u201d]", '"', question.question)
        match = next(filter(None, (pattern.search(stem) for pattern in patterns)), None)
        if match:
            reasons[question_index] = f"refers to the text that it was made from: '{match[0]}'"
    return FilterResult(reasons)


def _length(questions: Sequence[ExamQuestion], settings: ExamSection) -> FilterResult:
    reasons: dict[int, str] = {}
    for question_index, question in enumerate(questions):
        stem = len(question.question.strip())
        sizes = [len(choice.strip()) for choice in question.choices]
        if not settings.min_question <= stem <= settings.max_question:
            reasons[question_index] = (
                f"the stem has {stem:,} characters; {settings.min_question:,} to {settings.max_question:,} "
                f"are allowed"
            )
        elif not settings.min_choice <= min(sizes) or not max(sizes) <= settings.max_choice:
            size = min(sizes) if min(sizes) < settings.min_choice else max(sizes)
            reasons[question_index] = (
                f"a candidate has {size:,} characters; {settings.min_choice:,} to {settings.max_choice:,} "
                f"are allowed"
            )
    return FilterResult(reasons)


def _scored(name: FilterName, values: Sequence[float], settings: ExamSection) -> FilterResult:
    threshold: float = getattr(settings, name.replace("-", "_"))
    where, _, how = name.partition("-candidate-")
    what = (
        "a wrong candidate is closer to the passage than the right one, by"
        if where == "extra"
        else "two candidates are close, by"
    )
    reasons = {
        question_index: f"{what} {value:.3f} (above {threshold:.3f}; {how})"
        for question_index, value in enumerate(values)
        # What is computed in floats may miss the threshold by a hair.
        if value > threshold + 1e-9
    }
    return FilterResult(reasons, threshold)


def _duplicates(questions: Sequence[ExamQuestion], dropped: set[int], threshold: float) -> FilterResult:
    """Questions whose stems are similar to that of an earlier, kept one.

    It is 2 * (letters in common, in order) / all letters, of the words alone; with other numbers in them two
    stems ask about other things, however like they are.
    """
    stems = [" ".join(words(question.question)) for question in questions]
    # Those that go anyway come last, so that none that stays is a duplicate of them.
    order = [*(p for p in range(len(stems)) if p not in dropped), *sorted(dropped)]
    ordered = [stems[question_index] for question_index in order]
    reasons: dict[int, str] = {}
    for question_index, before in zip(order, _likeness(ordered, threshold), strict=True):
        for column in before.nonzero()[0]:
            first = order[int(column)]
            if first not in reasons:
                reasons[question_index] = (
                    f"like '{questions[first].question_id}', by {before[column]:.3f} of the letters"
                )
                break
    return FilterResult(dict(sorted(reasons.items())), threshold)


def _likeness(stems: Sequence[str], least: float) -> Iterator[NDArray[np.float64]]:
    """The similarity of each stem to each earlier one, 0..1.

    0 where it is less than `least`, or where the numbers in it are others.
    """
    import numpy as np
    from rapidfuzz import process
    from rapidfuzz.distance.Indel import normalized_similarity

    number_codes: dict[tuple[str, ...], int] = {}
    numbers = np.array(
        [number_codes.setdefault(tuple(_NUMBER.findall(stem)), len(number_codes)) for stem in stems]
    )
    for start in range(0, len(stems), _BLOCK):
        block = stems[start : start + _BLOCK]
        # rapidfuzz takes a cutoff for met or not by a hair; it only saves time here.
        cutoff = max(0.0, least - 1e-6)
        close = process.cdist(
            block,
            stems[: start + len(block)],
            scorer=normalized_similarity,
            score_cutoff=cutoff,
            dtype=np.float64,
        )
        close[close < least - 1e-9] = 0
        close[numbers[start : start + len(block), None] != numbers[None, : start + len(block)]] = 0
        for row in range(len(block)):
            yield close[row, : start + row]
