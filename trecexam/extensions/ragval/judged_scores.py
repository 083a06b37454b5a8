"""Scores of systems from judged answers: means, comparisons, positions between bounds.

Judgments are RAGVAL's: truthfulness and relevance, 1 to 5 each, and their sum, 2 to 10. An answer that could
not be judged is counted and has no score.

Intervals are Student's t over questions, and two systems are compared by the two-sided paired t test over the
questions that both have scores for, adjusted with Holm over all pairs of systems: those of `trecexam.scores`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.ragval.formats.answers import JudgedAnswer
from trecexam.scores.leaderboard import interval, score
from trecexam.scores.paired_tests import holm, paired_t
from trecexam.scores.values import TIE_DECIMALS

SCORES = ("truthfulness", "relevance", "sum")


@dataclass(frozen=True)
class Tokens:
    """Tokens of all of a system's answers.

    Attributes:
        total: of those that say it; None where none does.
        missing: how many answers do not say it.
    """

    total: int | None
    missing: int


@dataclass(frozen=True)
class Mean:
    """A mean over questions with its 95% interval by Student's t.

    Attributes:
        n: how many scores; where there is none, all else is NaN, where there is one, all but the mean.
        sd: standard deviation (n - 1).
    """

    n: int
    mean: float
    sd: float
    low: float
    high: float


@dataclass(frozen=True)
class Retrieved:
    """Statistics of a system's retrieval; None if its answers have none.

    Attributes:
        answers: how many of them retrieved anything.
        mean_blocks: blocks an answer, over those that say how many.
    """

    answers: int | None = None
    mean_blocks: float | None = None


@dataclass(frozen=True, eq=False)
class System:
    """A system's judged answers.

    Attributes:
        n: all answers.
        questions: of the answers that have scores; "" where it is not known which.
        scores: of the same, in the order of `SCORES`; shape (n - unparsed, 3).
        repeated: how many answers are to a question, told by its text, that it had answered before.
        unanswered: how many questions that other systems answered it gave no answer to; 0 where it is not
            known which it answered.
        retrieved: what its lines say of `retrieved`.
    """

    run_id: str
    n: int
    questions: tuple[str, ...]
    scores: NDArray[np.float64]
    input_tokens: Tokens
    output_tokens: Tokens
    repeated: int = 0
    unanswered: int = 0
    retrieved: Retrieved = Retrieved()

    @property
    def unparsed(self) -> int:
        """The number of answers without scores."""
        return self.n - len(self.scores)

    def mean(self, name: str) -> Mean:
        """The mean of one of `SCORES`, over answers with scores."""
        return _mean(self.scores[:, SCORES.index(name)].tolist())


@dataclass(frozen=True)
class Comparison:
    """Two systems on the questions that both have scores for: a row of the table of them.

    Attributes:
        score: one of `SCORES`.
        n: how many such questions there are.
        difference: mean of a less that of b, with the 95% interval `low` to `high`; NaN if missing.
        p: of the paired t test; NaN if missing: fewer than two questions, or the same difference on
            each.
        p_holm: adjusted over all pairs of systems.
    """

    score: str
    run_a: str
    run_b: str
    n: int
    difference: float
    low: float
    high: float
    p: float
    p_holm: float


@dataclass(frozen=True)
class Place:
    """A row with a system's position between baseline and oracle, over questions that all have scores for.

    Attributes:
        baseline, oracle: their means there; NaN where there is no such system.
        place: 0 at the baseline, 1 at the oracle, beyond where it is worse or better than them; NaN where one
            of them is missing, or the oracle is no better than the baseline.
    """

    run_id: str
    score: str
    n: int
    mean: float
    baseline: float
    oracle: float
    place: float


def systems_of(rows: Iterable[JudgedAnswer]) -> tuple[System, ...]:
    """The systems in these answers, the best mean sum first, those without scores last, ties by name."""
    gathered: dict[str, _Gathered] = {}
    for row in rows:
        if row.run_id not in gathered:
            gathered[row.run_id] = _Gathered()
        gathered[row.run_id].add(row)
    all_questions = {question for each in gathered.values() for question in each.answered if question}
    systems = [each.system(run_id, all_questions) for run_id, each in gathered.items()]
    return tuple(sorted(systems, key=_order))


def compare(systems: Sequence[System]) -> tuple[Comparison, ...]:
    """All pairs of systems, by score, then in the systems' order."""
    scores = _aligned(systems)
    pairs = list(combinations(range(len(systems)), 2))
    comparisons = []
    for column, name in enumerate(SCORES):
        rows = [_answered_by_all(scores[[a, b], :, column]) for a, b in pairs]
        first, second = np.array([0]), np.array([1])
        p = np.array([paired_t(row, first, second).p[0] for row in rows])
        for (a, b), row, raw, adjusted in zip(pairs, rows, p.tolist(), holm(p).tolist(), strict=True):
            gain = _mean((row[0] - row[1]).tolist())
            run_a, run_b = systems[a].run_id, systems[b].run_id
            comparisons.append(
                Comparison(name, run_a, run_b, gain.n, gain.mean, gain.low, gain.high, raw, adjusted)
            )
    return tuple(comparisons)


def places(systems: Sequence[System], baseline: str | None, oracle: str | None) -> tuple[Place, ...]:
    """The position of each other system between both; () if neither is given.

    Args:
        baseline, oracle: names of systems.
    """
    row_of = {system.run_id: row for row, system in enumerate(systems)}
    bounds = [row_of[name] for name in (baseline, oracle) if name is not None]
    scores = _aligned(systems)
    placed = []
    for row, system in enumerate(systems if bounds else ()):
        if row in bounds:
            continue
        for column, name in enumerate(SCORES):
            matched = _answered_by_all(scores[[row, *bounds], :, column])
            mean, *limits = (_mean(values.tolist()).mean for values in matched)
            low = limits.pop(0) if baseline is not None else math.nan
            high = limits.pop(0) if oracle is not None else math.nan
            span = high - low
            position = (mean - low) / span if round(span, TIE_DECIMALS) > 0 else math.nan
            placed.append(Place(system.run_id, name, matched.shape[1], mean, low, high, position))
    return tuple(placed)


def _aligned(systems: Sequence[System]) -> NDArray[np.float64]:
    """Scores of shape (n_systems, n_questions, 3) over all questions; NaN without a score."""
    known_of_any = {question for system in systems for question in system.questions if question}
    # A sum's last digit depends on the order: it must not be that of the lines.
    questions = {question: column_index for column_index, question in enumerate(sorted(known_of_any))}
    aligned = np.full((len(systems), len(questions), len(SCORES)), math.nan)
    for values, system in zip(aligned, systems, strict=True):
        rows_with_question = [row for row, question in enumerate(system.questions) if question]
        values[[questions[system.questions[row]] for row in rows_with_question]] = system.scores[
            rows_with_question
        ]
    return aligned


def _answered_by_all(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The questions, columns of (n_systems, n_questions), that no system lacks a score for."""
    return scores[:, ~np.isnan(scores).any(axis=0)]


def _mean(values: Sequence[float]) -> Mean:
    if not values:
        return Mean(0, math.nan, math.nan, math.nan, math.nan)
    summary, n = score(values), len(values)
    sd = summary.stderr * math.sqrt(n) if n > 1 else math.nan
    return Mean(n, summary.mean, sd, *interval(summary, n))


def _order(system: System) -> tuple[float, str]:
    mean = system.mean("sum").mean
    return (math.inf if math.isnan(mean) else -round(mean, TIE_DECIMALS)), system.run_id


class _Gathered:
    def __init__(self) -> None:
        self.answered: set[str] = set()
        self._n = 0
        self._questions: list[str] = []
        self._scores: list[tuple[float, float, float]] = []
        self._tokens: tuple[list[int], list[int]] = ([], [])
        self._repeated = 0
        self._retrieved: list[bool] = []
        self._blocks: list[int] = []

    def add(self, row: JudgedAnswer) -> None:
        self.answered.add(row.question_id)
        self._n += 1
        self._repeated += row.occurrence > 1
        if row.truthfulness is not None and row.relevance is not None:
            self._questions.append(row.question_id)
            self._scores.append((row.truthfulness, row.relevance, row.truthfulness + row.relevance))
        for token_counts, tokens in zip(self._tokens, (row.n_input_tokens, row.n_output_tokens), strict=True):
            if tokens is not None:
                token_counts.append(tokens)
        # A number below 0 is none of blocks.
        if row.retrieved is not None and not (isinstance(row.retrieved, (int, float)) and row.retrieved < 0):
            self._retrieved.append(bool(row.retrieved))
            blocks = _blocks(row.retrieved)
            if blocks is not None:
                self._blocks.append(blocks)

    def system(self, run_id: str, all_questions: Set[str]) -> System:
        input_tokens, output_tokens = (
            Tokens(sum(token_counts) if token_counts else None, self._n - len(token_counts))
            for token_counts in self._tokens
        )
        scores = np.array(self._scores, np.float64).reshape(-1, len(SCORES))
        return System(
            run_id,
            self._n,
            tuple(self._questions),
            scores,
            input_tokens,
            output_tokens,
            self._repeated,
            0 if "" in self.answered else len(all_questions - self.answered),
            Retrieved(
                sum(self._retrieved) if self._retrieved else None,
                sum(self._blocks) / len(self._blocks) if self._blocks else None,
            ),
        )


def _blocks(retrieved: Any) -> int | None:
    """The number of blocks in an answer's `retrieved`: a list, a number, or false for none."""
    if not retrieved:
        return 0
    if isinstance(retrieved, list):
        return len(retrieved)
    return retrieved if isinstance(retrieved, int) and not isinstance(retrieved, bool) else None
