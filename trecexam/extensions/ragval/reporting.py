"""The report on judged answers, from files or rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from converters.errors import ConversionError
from trecexam.errors import TrecexamError
from trecexam.extensions.ragval.formats.answers import JudgedAnswer, read_judged
from trecexam.extensions.ragval.judged_scores import (
    SCORES,
    Comparison,
    Place,
    System,
    compare,
    places,
    systems_of,
)
from trecexam.files.stamps import Rejected
from trecexam.results.notes import rejected_notes
from trecexam.results.result import Result
from trecexam.results.table import Layout, Table, Value
from trecexam.results.text import plural

#: The systems that are the bounds, where they are there.
BASELINE, ORACLE = "closed-book", "oracle"
_MEANING = {
    "interval": "95%, Student's t over questions",
    "test": "two-sided paired t test over shared questions; p_holm: over all pairs of a score",
}
REPORT_COLUMNS = ("run_id", "n", "unparsed", *SCORES, "n_input_tokens", "n_output_tokens")
RETRIEVED_COLUMNS = ("n_retrieved", "mean_blocks")


class NoAnswersError(TrecexamError):
    """There is nothing to report."""


@dataclass(frozen=True)
class RagvalReport(Result):
    """Systems by their judged answers.

    Attributes:
        systems: the best mean sum first.
        baseline, oracle: the names of the two among them that are bounds; None if missing.
        notes: what one must know of it, one per line.
        rejected: lines of the files that were rejected.
    """

    systems: tuple[System, ...]
    comparisons: tuple[Comparison, ...]
    places: tuple[Place, ...]
    baseline: str | None
    oracle: str | None
    notes: tuple[str, ...] = ()
    rejected: tuple[Rejected, ...] = ()

    def _declare(self) -> dict[str, Table]:
        """`report` has a row a system; the other tables are on its means, on pairs, bounds and answers."""
        of_report = {
            "report": report_table(self.systems),
            "intervals": intervals_table(self.systems),
            "significance": significance_table(self.comparisons),
        }
        if self.baseline is not None or self.oracle is not None:
            of_report["bounds"] = bounds_table(self.places)
        return {**of_report, "answers": answers_table(self.systems)}

    @property
    def facts(self) -> dict[str, Any]:
        """The bounds, and definitions of intervals and p values."""
        return {"baseline": self.baseline, "oracle": self.oracle, **_MEANING}


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


def report_of(rows: Iterable[JudgedAnswer]) -> RagvalReport:
    """The report on judged answers.

    Raises:
        NoAnswersError: there are none, or none has scores, a question or its id.
    """
    rows = list(rows)
    if rows and all(row.status == "unparsed" and not row.question_id for row in rows):
        raise NoAnswersError(
            "no line is a judged answer: each needs truthfulness and relevance, 1 to 5, and question_id or "
            "question"
        )
    systems = systems_of(rows)
    if not systems:
        raise NoAnswersError("no answer is judged, so there is nothing to report")
    names = {each.run_id for each in systems}
    baseline, oracle = (name if name in names else None for name in (BASELINE, ORACLE))
    placed, notes = places(systems, baseline, oracle), tuple(remarks(systems))
    return RagvalReport(systems, compare(systems), placed, baseline, oracle, notes)


def report_table(systems: Iterable[System]) -> Table:
    """A row per system: answers, answers without scores, mean scores, and tokens.

    Where an answer says it, too how many retrieved anything, and the blocks an answer.
    """
    systems = tuple(systems)
    has_retrieved = any(system.retrieved.answers is not None for system in systems)
    rows = [
        (
            system.run_id,
            system.n,
            system.unparsed,
            *(system.mean(name).mean for name in SCORES),
            system.input_tokens.total,
            system.output_tokens.total,
            *((system.retrieved.answers, system.retrieved.mean_blocks) if has_retrieved else ()),
        )
        for system in systems
    ]
    header = (*REPORT_COLUMNS, *(RETRIEVED_COLUMNS if has_retrieved else ()))
    return Table(header, tuple(rows), digits=4, layout=Layout(("run_id",)))


def answers_table(systems: Iterable[System]) -> Table:
    """A row per system: statistics of its answers."""
    header = (
        *("run_id", "without_input_tokens", "without_output_tokens"),
        *("repeated_questions", "unanswered_questions"),
    )
    rows = [
        (each.run_id, each.input_tokens.missing, each.output_tokens.missing, each.repeated, each.unanswered)
        for each in systems
    ]
    return Table(header, tuple(rows))


def intervals_table(systems: Iterable[System]) -> Table:
    """A row per system and score; `n` counts answers with scores."""
    rows: list[tuple[Value, ...]] = [
        (system.run_id, name, mean.n, mean.mean, mean.sd, mean.low, mean.high)
        for system in systems
        for name in SCORES
        for mean in [system.mean(name)]
    ]
    return Table(("run_id", "score", "n", "mean", "sd", "mean.low", "mean.high"), tuple(rows))


def significance_table(comparisons: Iterable[Comparison]) -> Table:
    """A row a score and pair of systems."""
    differences = ("difference", "difference.low", "difference.high")
    header = ("score", "run_a", "run_b", "n", *differences, "p", "p_holm")
    return Table(header, tuple(map(astuple, comparisons)), small=("p", "p_holm"))


def bounds_table(bounds: Iterable[Place]) -> Table:
    """A row a system and score: where it is between the baseline (0) and the oracle (1)."""
    header = ("run_id", "score", "n", "mean", "baseline", "oracle", "place")
    return Table(header, tuple(map(astuple, bounds)))


def remarks(systems: Sequence[System]) -> Iterator[str]:
    """Notes on the figures, one per line."""
    for system in systems:
        if system.unparsed == system.n:
            yield f"{system.run_id}: no answer has scores, so there are no means"
        for what, tokens in (("input", system.input_tokens), ("output", system.output_tokens)):
            if tokens.missing and tokens.total is not None:
                yield (
                    f"{system.run_id}: {tokens.missing:,} of {system.n:,} answers do not give their {what} "
                    f"tokens; the total covers the other answers"
                )
        if system.repeated:
            yield (
                f"{system.run_id}: {system.repeated:,} of {system.n:,} answers are to a question that was "
                f"answered before (by its text, as they have no ids); each counts"
            )
        if system.unanswered:
            yield (
                f"{system.run_id}: no answer to {plural(system.unanswered, 'question')} that other systems "
                f"answered; its means cover only the questions that it answered"
            )
        unknown = sum(not question for question in system.questions)
        if unknown and len(systems) > 1:
            yield (
                f"{system.run_id}: not compared with other systems: {plural(unknown, 'answer')} without "
                "question_id and question"
            )
