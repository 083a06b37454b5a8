"""The report on judged answers, from files or rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from converters.errors import ConversionError
from trecexam.errors import TrecexamError
from trecexam.extensions.ragval import tables
from trecexam.extensions.ragval.formats.answers import JudgedAnswer, read_judged
from trecexam.extensions.ragval.judged_scores import (
    Comparison,
    Place,
    System,
    compare,
    places,
    systems_of,
)
from trecexam.files.stamps import Rejected
from trecexam.line.rejected import rejected_notes
from trecexam.tables.result import Result
from trecexam.tables.table import Table
from trecexam.tables.text import plural

#: The systems that are the bounds, where they are there.
BASELINE, ORACLE = "closed-book", "oracle"
_MEANING = {
    "interval": "95%, Student's t over questions",
    "test": "two-sided paired t test over shared questions; p_holm: over all pairs of a score",
}


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

    def declare(self) -> dict[str, Table]:
        """`report` has a row a system; the other tables are on its means, on pairs, bounds and answers."""
        of_report = {
            "report": tables.report_table(self.systems),
            "intervals": tables.intervals_table(self.systems),
            "significance": tables.significance_table(self.comparisons),
        }
        if self.baseline is not None or self.oracle is not None:
            of_report["bounds"] = tables.bounds_table(self.places)
        return {**of_report, "answers": tables.answers_table(self.systems)}

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
    placed, notes = places(systems, baseline, oracle), tuple(tables.remarks(systems))
    return RagvalReport(systems, compare(systems), placed, baseline, oracle, notes)
