"""The report on judged answers, from files or rows.

Judgments are RAGVAL's: truthfulness and relevance, 1 to 5 each, and their sum, 2 to 10. Unjudged answers are
counted without a score. Means and standard errors are the leaderboard's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from converters.errors import ConversionError
from trecexam.errors import TrecexamError, rejected_notes
from trecexam.extensions.ragval.formats.answers import TOKENS, AnswerRow, read_judged
from trecexam.files.stamps import Rejected
from trecexam.results.result import Result
from trecexam.results.table import Layout, Table
from trecexam.results.text import plural
from trecexam.scores.leaderboard import Leaderboard, leaderboard
from trecexam.scores.values import MeasureValues

SCORES = ("truthfulness", "relevance", "sum")


@dataclass(frozen=True)
class RagvalReport(Result):
    """Systems by their judged answers.

    Attributes:
        answers: system -> its answers, the best mean sum first.
        board: the leaderboard by sum, truthfulness and relevance, over each system's own scored answers.
        notes: notes on the report, one per line.
        rejected: rejected lines of the files.
    """

    answers: Mapping[str, Sequence[AnswerRow]]
    board: Leaderboard
    notes: tuple[str, ...] = ()
    rejected: tuple[Rejected, ...] = ()

    def _declare(self) -> dict[str, Table]:
        """Declare `report`, a row per system, and `leaderboard`, with standard errors."""
        return {"report": self._report(), "leaderboard": self.board.table}

    def _report(self) -> Table:
        """Return a row per system: answers, answers without scores, mean scores, and tokens."""
        table = []
        for of_run in self.board.rows:
            rows = self.answers[of_run.run]
            total, *means = (score.mean if of_run.n_answered else math.nan for score in of_run.scores)
            counted = [
                [tokens for row in rows if (tokens := getattr(row, key)) is not None] for key in TOKENS
            ]
            tokens = [sum(each) if each else None for each in counted]
            unparsed = len(rows) - of_run.n_answered
            table.append((of_run.run, len(rows), unparsed, *means, total, *tokens))
        header = ("run_id", "n", "unparsed", *SCORES, *TOKENS)
        return Table(header, tuple(table), digits=4, layout=Layout(("run_id",)))


def ragval_report(*paths: Path | str) -> RagvalReport:
    """Report systems by their judged answers in JSON Lines files, plain or gzip.

    Rejected lines are left out, and are in the report's `rejected`.

    Raises:
        TrecexamError: a missing or repeated file, or no usable line.
    """
    files = [Path(path) for path in paths]
    if not files:
        raise TrecexamError("give a file of judged answers")
    for number, path in enumerate(files):
        if not path.exists():
            raise TrecexamError("no such file", path=path)
        if any(path.samefile(other) for other in files[:number]):
            raise TrecexamError("is given twice: its answers would count twice", path=path)
    errors: list[ConversionError] = []
    rows = list(read_judged(files, errors.append))
    if not any(row.question_id or row.status == "ok" for row in rows):
        first = f"; the first of {plural(len(errors), 'error')}: {errors[0]}" if errors else ""
        raise TrecexamError(
            "no line is a judged answer: each needs truthfulness and relevance, 1 to 5, and question_id or "
            f"question{first}"
        )
    rejected = tuple(Rejected(str(error.path), error.line, error.reason, error.lost) for error in errors)
    return replace(report_of(rows), rejected=rejected).with_notes(*rejected_notes(rejected))


def report_of(rows: Iterable[AnswerRow]) -> RagvalReport:
    """Return the report on judged answers, at least one."""
    answers: dict[str, list[AnswerRow]] = {}
    for row in rows:
        answers.setdefault(row.run_id, []).append(row)
    values = scores_of(answers)
    scored = {
        run: [q for q, total in zip(values.query_ids, row, strict=True) if not math.isnan(total)]
        for run, row in zip(values.runs, values.matrix("sum").tolist(), strict=True)
    }
    board = leaderboard(values, values.measures, values.query_ids, scored, "answered")
    return RagvalReport(answers, board, tuple(_remarks(answers, board)))


def scores_of(answers: Mapping[str, Sequence[AnswerRow]]) -> MeasureValues:
    """Return each system's sum, truthfulness and relevance on each question; NaN without a score."""
    keyed = {
        # Each answer without a known question gets a separate column.
        (run, row.question_id or f"{run} {number}"): row
        for run, rows in answers.items()
        for number, row in enumerate(rows)
    }
    runs, questions = list(answers), sorted({question for _, question in keyed})
    at = {question: column for column, question in enumerate(questions)}
    array = np.full((len(runs), len(questions), 3), math.nan)
    for (run, question), row in keyed.items():
        if row.truthfulness is not None and row.relevance is not None:
            total = row.truthfulness + row.relevance
            array[runs.index(run), at[question]] = total, row.truthfulness, row.relevance
    return MeasureValues(tuple(runs), tuple(questions), ("sum", "truthfulness", "relevance"), array)


def _remarks(answers: Mapping[str, Sequence[AnswerRow]], board: Leaderboard) -> Iterator[str]:
    """Yield notes on the figures, one per line."""
    questions = {row.question_id for rows in answers.values() for row in rows} - {""}
    for of_run in board.rows:
        run, rows = of_run.run, answers[of_run.run]
        if not of_run.n_answered:
            yield f"{run}: no answer has scores, so there are no means"
        for what, key in zip(("input", "output"), TOKENS, strict=True):
            missing = sum(getattr(row, key) is None for row in rows)
            if 0 < missing < len(rows):
                yield (
                    f"{run}: {missing:,} of {len(rows):,} answers do not give their {what} tokens; the total "
                    f"covers the other answers"
                )
        answered = {row.question_id for row in rows}
        if questions - answered and "" not in answered:
            yield (
                f"{run}: no answer to {plural(len(questions - answered), 'question')} that other systems "
                f"answered; its means cover only the questions that it answered"
            )
