"""The report on judged answers, from files or rows.

Judgments are RAGVAL's: truthfulness and relevance, 1 to 5 each, and their sum, 2 to 10. An answer that could
not be judged is counted and has no score. Means, standard errors and tests are the leaderboard's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from converters.errors import ConversionError
from trecexam.errors import TrecexamError
from trecexam.extensions.ragval.formats.answers import AnswerRow, read_judged
from trecexam.features.leaderboard.differences import ALPHA, Differences, compare
from trecexam.files.stamps import Rejected
from trecexam.results.notes import rejected_notes
from trecexam.results.result import Result
from trecexam.results.table import Layout, Table
from trecexam.results.text import plural
from trecexam.scores.leaderboard import Leaderboard, leaderboard
from trecexam.scores.values import MeasureValues

SCORES = ("truthfulness", "relevance", "sum")
TOKENS = ("n_input_tokens", "n_output_tokens")


class NoAnswersError(TrecexamError):
    """There is nothing to report."""


@dataclass(frozen=True)
class RagvalReport(Result):
    """Systems by their judged answers.

    Attributes:
        answers: system -> its answers, the best mean sum first.
        board: the leaderboard by sum, truthfulness and relevance, over each system's own scored answers.
        compared: all pairs of systems with scores, over the `n_compared` questions that all of these have
            scores for; None without two systems or without such a question.
        notes: what one must know of it, one per line.
        rejected: lines of the files that were rejected.
    """

    answers: Mapping[str, Sequence[AnswerRow]]
    board: Leaderboard
    compared: Differences | None
    n_compared: int
    notes: tuple[str, ...] = ()
    rejected: tuple[Rejected, ...] = ()

    def _declare(self) -> dict[str, Table]:
        """`report` has a row a system, `leaderboard` standard errors, `differences` and `groups` tests."""
        more = {} if self.compared is None else self.compared.tables
        return {"report": self._report(), "leaderboard": self.board.table, **more}

    @property
    def facts(self) -> dict[str, Any]:
        """How differences were tested."""
        tests = {} if self.compared is None else self.compared.facts
        return {"questions_compared": self.n_compared, **tests}

    def _report(self) -> Table:
        """Return a row per system: answers, answers without scores, mean scores, and tokens.

        Where an answer says it, too how many retrieved anything, and the blocks an answer.
        """
        has_retrieved = any(row.retrieved is not None for rows in self.answers.values() for row in rows)
        table = []
        for of in self.board.rows:
            rows = self.answers[of.run]
            means = [
                of.scores[self.board.measures.index(name)].mean if of.n_answered else math.nan
                for name in SCORES
            ]
            counted = [
                [tokens for row in rows if (tokens := getattr(row, key)) is not None] for key in TOKENS
            ]
            tokens = [sum(each) if each else None for each in counted]
            retrieved = _retrieved(rows) if has_retrieved else ()
            table.append((of.run, len(rows), len(rows) - of.n_answered, *means, *tokens, *retrieved))
        more = ("n_retrieved", "mean_blocks") if has_retrieved else ()
        header = ("run_id", "n", "unparsed", *SCORES, *TOKENS, *more)
        return Table(header, tuple(table), digits=4, layout=Layout(("run_id",)))


def ragval_report(*paths: Path | str) -> RagvalReport:
    """Systems by their judged answers in JSON Lines files, plain or gzip.

    Lines that cannot be taken are left out, and are in the report's `rejected`.

    Raises:
        TrecexamError: a file is not there or is named twice, or no line can be taken.
    """
    files = [Path(path) for path in paths]
    if not files:
        raise TrecexamError("give a file of judged answers")
    for number, path in enumerate(files):
        if not path.exists():
            raise TrecexamError("no such file", path=path)
        if any(path.samefile(other) for other in files[:number]):
            raise TrecexamError("is given twice: its answers would count twice", path=path)
    rejected: list[ConversionError] = []
    try:
        report = report_of(read_judged(files, rejected.append))
    except NoAnswersError as error:
        first = f"; the first of {plural(len(rejected), 'error')}: {rejected[0]}" if rejected else ""
        raise NoAnswersError(f"{error.reason}{first}") from None
    lines = tuple(Rejected(str(error.path), error.line, error.reason, error.lost) for error in rejected)
    return replace(report, rejected=lines, notes=(*rejected_notes(lines), *report.notes))


def report_of(rows: Iterable[AnswerRow]) -> RagvalReport:
    """The report on judged answers."""
    answers: dict[str, list[AnswerRow]] = {}
    for row in rows:
        answers.setdefault(row.run_id, []).append(row)
    if not answers:
        raise NoAnswersError("no answer is judged, so there is nothing to report")
    if all(row.status == "unparsed" and not row.question_id for rows in answers.values() for row in rows):
        raise NoAnswersError(
            "no line is a judged answer: each needs truthfulness and relevance, 1 to 5, and question_id or "
            "question"
        )
    values = scores_of(answers)
    own = {
        run: [q for q, total in zip(values.query_ids, row, strict=True) if not math.isnan(total)]
        for run, row in zip(values.runs, values.matrix("sum").tolist(), strict=True)
    }
    board = leaderboard(values, values.measures, values.query_ids, own, "answered")
    scored = {run: query_ids for run, query_ids in own.items() if query_ids}
    common = sorted(set.intersection(*map(set, scored.values()))) if scored else []
    compared = None
    if len(scored) > 1 and common:
        by_score = (
            compare(name, [*scored], values.matrix(name, [*scored], common)) for name in values.measures
        )
        compared = Differences(None, "t", "holm", ALPHA, None, tuple(by_score))
    report = RagvalReport(answers, board, compared, len(common))
    return report.with_notes(*_remarks(report))


def scores_of(answers: Mapping[str, Sequence[AnswerRow]]) -> MeasureValues:
    """Return each system's sum, truthfulness and relevance of each question; NaN without a score."""
    keyed = {
        # An answer to an unknown question is the only one to it.
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


def _retrieved(rows: Iterable[AnswerRow]) -> tuple[int | None, float | None]:
    """Return how many answers retrieved anything, and the mean number of blocks; None where none says it."""
    # A number below 0 is none of blocks.
    said = [
        row.retrieved
        for row in rows
        if row.retrieved is not None and not (isinstance(row.retrieved, int | float) and row.retrieved < 0)
    ]
    blocks = [n for each in said if (n := _blocks(each)) is not None]
    return sum(map(bool, said)) if said else None, sum(blocks) / len(blocks) if blocks else None


def _blocks(retrieved: Any) -> int | None:
    """The number of blocks in an answer's `retrieved`: a list, a number, or false for none."""
    if not retrieved:
        return 0
    if isinstance(retrieved, list):
        return len(retrieved)
    return retrieved if isinstance(retrieved, int) and not isinstance(retrieved, bool) else None


def _remarks(report: RagvalReport) -> Iterator[str]:
    """Yield notes on the figures, one per line."""
    asked = {row.question_id for rows in report.answers.values() for row in rows} - {""}
    for of in report.board.rows:
        run, rows = of.run, report.answers[of.run]
        if not of.n_answered:
            yield f"{run}: no answer has scores, so there are no means"
        for what, key in zip(("input", "output"), TOKENS, strict=True):
            missing = sum(getattr(row, key) is None for row in rows)
            if 0 < missing < len(rows):
                yield (
                    f"{run}: {missing:,} of {len(rows):,} answers do not give their {what} tokens; the total "
                    f"covers the other answers"
                )
        repeated = sum(row.occurrence > 1 for row in rows)
        if repeated:
            yield (
                f"{run}: {repeated:,} of {len(rows):,} answers are to a question that was answered before "
                f"(by its text, as they have no ids); each counts"
            )
        answered = {row.question_id for row in rows}
        if asked - answered and "" not in answered:
            yield (
                f"{run}: no answer to {plural(len(asked - answered), 'question')} that other systems "
                f"answered; its means cover only the questions that it answered"
            )
