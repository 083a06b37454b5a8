"""The report on judged answers: tables, JSON and plots, from files or rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from converters.errors import ConversionError
from trecexam.errors import TrecexamError
from trecexam.extensions.ragval import tables
from trecexam.extensions.ragval.formats.answers import JudgedAnswer, read_judged
from trecexam.extensions.ragval.judged_scores import (
    BINS,
    Comparison,
    Place,
    Sweep,
    System,
    compare,
    places,
    swept,
    systems_of,
)
from trecexam.extensions.ragval.plots import ragval_plots
from trecexam.files.atomic import replace_all
from trecexam.tables.plots.drawings import FOLDER, KINDS, drawn
from trecexam.tables.plots.model import Plot
from trecexam.tables.result import Result
from trecexam.tables.table import Table, to_tsv
from trecexam.tables.text import plural

#: The systems that are the bounds, where they are there.
BASELINE, ORACLE = "closed-book", "oracle"
_MEANING = {
    "interval": "95%, Student's t over questions",
    "test": "two-sided paired t test over shared questions; p_holm: over all pairs of a score",
    "bins": f"sums of {BINS[0]} to {BINS[-1]}; one between two whole sums counts at the lower one",
}
#: What a report always has, and files that may not apply to a later one.
ALWAYS = ("report.tsv", "intervals.tsv", "histogram.tsv", "significance.tsv", "report.json")
_OURS = (
    *("bounds.tsv", "sweep.tsv", "rejected.tsv"),
    *(f"{FOLDER}/{plot}.{kind}" for plot in ("means", "histogram", "sweep") for kind in KINDS),
)


FILES = (*ALWAYS, *_OURS)


class NoAnswersError(TrecexamError):
    """There is nothing to report."""


@dataclass(frozen=True)
class RagvalReport(Result):
    """Systems by their judged answers.

    Attributes:
        systems: the best mean sum first.
        baseline, oracle: the names of the two among them that are bounds; None if missing.
        notes: what one must know of it, one per line.
        rejected: lines that were rejected, and files.
    """

    systems: tuple[System, ...]
    comparisons: tuple[Comparison, ...]
    places: tuple[Place, ...]
    baseline: str | None
    oracle: str | None
    sweep: Sweep | None
    notes: tuple[str, ...] = ()
    rejected: tuple[ConversionError, ...] = ()

    def declare(self) -> dict[str, Table]:
        """`report`, a row a system; the others are the files of `ragval report`, by name; and `answers`."""
        of_report = {
            "report": tables.report_table(self.systems),
            "intervals": tables.intervals_table(self.systems),
            "histogram": tables.histogram_table(self.systems),
            "significance": tables.significance_table(self.comparisons),
        }
        if self.baseline is not None or self.oracle is not None:
            of_report["bounds"] = tables.bounds_table(self.places)
        if self.sweep is not None:
            of_report["sweep"] = tables.sweep_table(self.sweep)
        if self.rejected:
            of_report["rejected"] = _rejected_table(self.rejected)
        return {**of_report, "answers": tables.answers_table(self.systems)}

    @property
    def facts(self) -> dict[str, Any]:
        """The bounds, and definitions of intervals, p values and bins."""
        return {"baseline": self.baseline, "oracle": self.oracle, **_MEANING}

    @property
    def plots(self) -> tuple[Plot, ...]:
        """The plots of means, histogram and sweep."""
        named: dict[str | None, System] = {each.run_id: each for each in self.systems}
        return tuple(ragval_plots(self.systems, named.get(self.baseline), named.get(self.oracle), self.sweep))

    def write(self, out: Path | str) -> list[str]:
        """Writes the files to a folder, and removes files of an earlier report that do not apply.

        Returns:
            Why a plot could not be drawn, one per line.

        Raises:
            TrecexamError: a file cannot be written.
        """
        pictures, why = drawn(self.plots)
        replace_all(Path(out), tables_of(self) | pictures, _OURS)
        return why


def ragval_report(*paths: Path | str, sweep: str | None = None) -> RagvalReport:
    """Systems by their judged answers in JSON Lines files, plain or gzip.

    Lines that cannot be taken are left out, and are in the report's `rejected`.

    Args:
        sweep: a parameter: a field of the lines.

    Raises:
        TrecexamError: a file is not there or is named twice, no line can be taken, no line has the parameter,
            or a run has several values of it.
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
    rows = read_judged(files, rejected.append, parameter=sweep)
    try:
        return replace(report_of(rows, sweep), rejected=tuple(rejected))
    except NoAnswersError as error:
        first = f"; the first of {plural(len(rejected), 'error')}: {rejected[0]}" if rejected else ""
        raise NoAnswersError(f"{error.reason}{first}") from None


def report_of(rows: Iterable[JudgedAnswer], parameter: str | None = None) -> RagvalReport:
    """The report on judged answers.

    Args:
        parameter: that was swept, whose values the rows have.

    Raises:
        NoAnswersError: there are none, or none has scores, a question or its id.
        TrecexamError: they have no value of the parameter, or a system's several.
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
    sweep, notes = None, [*tables.remarks(systems)]
    if parameter is not None:
        sweep = _sweep(parameter, systems)
        left = [name for name in sweep.left_out if name not in (baseline, oracle)]
        if left:
            notes.append(f"{plural(len(left), 'run')} without {parameter}, not in sweep.tsv: {_some(left)}")
    placed = places(systems, baseline, oracle)
    return RagvalReport(systems, compare(systems), placed, baseline, oracle, sweep, tuple(notes))


def tables_of(report: RagvalReport) -> dict[str, bytes]:
    """The report's files without its plots, by name."""
    contents = {f"{name}.tsv": to_tsv(table) for name, table in report.tables.items() if name != "answers"}
    return {name: text.encode() for name, text in {**contents, "report.json": report.to_json()}.items()}


def _sweep(parameter: str, systems: Sequence[System]) -> Sweep:
    for each in systems:
        if len(each.parameters) > 1:
            raise TrecexamError(
                f"run '{each.run_id}' has several values of {parameter}: {_some(each.parameters)}; give the "
                "answers of each its own run_id"
            )
    sweep = swept(parameter, systems)
    if not sweep.points:
        raise TrecexamError(f'no line has a "{parameter}": give a field of the lines')
    return sweep


def _rejected_table(rejected: Iterable[ConversionError]) -> Table:
    rows = ((error.path, error.line, error.reason, error.lost) for error in rejected)
    return Table(("file", "line", "reason", "lost"), tuple(rows))


def _some(names: Sequence[str], most: int = 8) -> str:
    listed = ", ".join(f"'{name[:60]}'" for name in names[:most])
    return listed + (f" and {len(names) - most} more" if len(names) > most else "")
