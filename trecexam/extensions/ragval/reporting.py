"""The report on judged answers: from files of them, or from rows, to its tables, JSON and plots."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from converters.errors import ConversionError
from converters.label_table import LabelTable, read_labels
from trecexam.errors import TrecexamError, did_you_mean
from trecexam.extensions.ragval import tables
from trecexam.extensions.ragval.formats.answers import JudgedAnswer, read_judged
from trecexam.extensions.ragval.judged_scores import (
    BINS,
    Comparison,
    Place,
    System,
    compare,
    places,
    systems_of,
)
from trecexam.extensions.ragval.plots import ragval_plots
from trecexam.extensions.ragval.sweep import Sweep, swept
from trecexam.files import atomic as files
from trecexam.tables.plots.canvas import draw
from trecexam.tables.plots.drawings import FOLDER, KINDS, plot_files
from trecexam.tables.plots.model import Drawing, Plot
from trecexam.tables.result import Result
from trecexam.tables.table import Table, to_json, to_tsv
from trecexam.tables.text import plural

#: The systems that are the bounds where nobody names others.
BASELINE, ORACLE = "closed-book", "oracle"
_MEANING = {
    "interval": "95%, Student's t over questions",
    "test": "two-sided paired t test over shared questions; p_holm: over all pairs of a score",
    "bins": f"sums of {BINS[0]} to {BINS[-1]}; one between two whole sums counts at the lower one",
}
#: What is written only where it applies.
_OPTIONAL = ("bounds.tsv", "sweep.tsv", "rejected.tsv")
_PLOTS = ("means", "histogram", "sweep")


class NoAnswersError(TrecexamError):
    """There is nothing to report."""


@dataclass(frozen=True)
class ReportOptions:
    """What a report is asked for.

    Attributes:
        baseline, oracle: systems; None for those called closed-book and oracle, where there are such.
        sweep: a parameter: a field of the lines, or a column of `parameters`.
        parameters: `run_id` and a column a parameter.
    """

    baseline: str | None = None
    oracle: str | None = None
    sweep: str | None = None
    parameters: LabelTable | None = None

    @property
    def field(self) -> str | None:
        """The field of the lines that is needed."""
        return self.sweep if self.parameters is None else None


@dataclass(frozen=True)
class RagvalReport(Result):
    """Systems by their judged answers.

    Attributes:
        systems: the best mean sum first.
        baseline, oracle: the names of the two among them that are bounds; None where there is none.
        notes: what one must know of it, a line each.
        rejected: lines that were not taken, and files.
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
        """Which systems are the bounds, and what intervals, p values and bins are."""
        return {"baseline": self.baseline, "oracle": self.oracle, **_MEANING}

    @property
    def plots(self) -> tuple[Plot, ...]:
        """Means, histogram, and the sweep where there is one."""
        named: dict[str | None, System] = {each.run_id: each for each in self.systems}
        return tuple(ragval_plots(self.systems, named.get(self.baseline), named.get(self.oracle), self.sweep))

    def write(self, out: Path | str, *, plots: bool = True) -> list[str]:
        """Writes its files into a folder; what of an earlier report does not apply to this one is removed.

        Returns:
            Why a plot could not be drawn, a line each.

        Raises:
            TrecexamError: a file cannot be written.
        """
        out = Path(out)
        files.make_folder(out)
        why: list[str] = []

        def drawn(plot: Plot) -> Drawing:
            drawing = draw(plot)
            if drawing.why:
                why.append(f"plot {plot.name} could not be drawn: {drawing.why}")
            return drawing

        written = dict(files_of(self, drawn if plots else None))
        for name in (*_OPTIONAL, *(f"{FOLDER}/{plot}.{kind}" for plot in _PLOTS for kind in KINDS)):
            if name not in written:
                files.remove(out / name)
        with contextlib.suppress(OSError):
            (out / FOLDER).rmdir()
        for name, content in written.items():
            files.replace(out / name, content)
        return why


def ragval_report(
    *paths: Path | str,
    baseline: str | None = None,
    oracle: str | None = None,
    sweep: str | None = None,
    parameters: Path | str | None = None,
) -> RagvalReport:
    """Systems by their judged answers in JSON Lines files, plain or gzip.

    Lines that cannot be taken are left out, and are in the report's `rejected`.

    Args:
        baseline, oracle: runs that are bounds; None for those called closed-book and oracle, if any.
        sweep: a parameter: a field of the lines, or a column of `parameters`.
        parameters: a TSV file with `run_id` and a column a parameter.

    Raises:
        TrecexamError: a file is not there or is named twice, no line can be taken, there is no such run or
            parameter, or a run has several values of it.
        ConversionError: with the line: `parameters` cannot be read.
    """
    given = [Path(path) for path in paths]
    if not given:
        raise TrecexamError("a file of judged answers is needed")
    for number, path in enumerate(given):
        if not path.exists():
            raise TrecexamError("no such file", path=path)
        if any(path.samefile(other) for other in given[:number]):
            raise TrecexamError("is named twice: its answers would count twice", path=path)
    known = None if parameters is None else read_labels(parameters, "run_id", empty=None)
    options = ReportOptions(baseline, oracle, _parameter(sweep, known, parameters), known)
    rejected: list[ConversionError] = []
    rows = read_judged(given, rejected.append, parameter=options.field)
    try:
        report = report_of(rows, options)
        return replace(report, rejected=tuple(rejected))
    except NoAnswersError as error:
        first = f"; the first of {plural(len(rejected), 'error')}: {rejected[0]}" if rejected else ""
        raise NoAnswersError(f"{error.reason}{first}") from None


def report_of(rows: Iterable[JudgedAnswer], options: ReportOptions | None = None) -> RagvalReport:
    """The report on judged answers.

    Raises:
        NoAnswersError: there are none.
        TrecexamError: `options` name what is not there.
    """
    options = options or ReportOptions()
    systems = systems_of(rows)
    if not systems:
        raise NoAnswersError("no judged answer to report")
    baseline, oracle = (
        _bound(systems, named, usual, option)
        for named, usual, option in (
            (options.baseline, BASELINE, "baseline"),
            (options.oracle, ORACLE, "oracle"),
        )
    )
    if baseline is not None and baseline == oracle:
        raise TrecexamError(f"'{baseline}' cannot be the baseline and the oracle: name another run")
    sweep, more = _sweep(systems, options, {baseline, oracle}) if options.sweep else (None, [])
    return RagvalReport(
        systems,
        compare(systems),
        places(systems, baseline, oracle),
        baseline,
        oracle,
        sweep,
        (*tables.remarks(systems), *more),
    )


def files_of(
    report: RagvalReport, draw: Callable[[Plot], Drawing] | None = None
) -> Iterator[tuple[str, bytes]]:
    """The report's files, by name.

    Args:
        draw: draws a plot; None for no plots.
    """
    for name, table in report.tables.items():
        if name != "answers":
            yield f"{name}.tsv", to_tsv(table).encode()
    yield "report.json", to_json(_report_json(report)).encode()
    for plot in report.plots if draw is not None else ():
        assert draw is not None
        yield from plot_files(plot, draw(plot))


def _bound(systems: Sequence[System], named: str | None, usual: str, option: str) -> str | None:
    names = [each.run_id for each in systems]
    if named is None:
        return usual if usual in names else None
    if named not in names:
        hint = did_you_mean(named, names, f"there are {_some(names)}")
        raise TrecexamError(f"no run is called '{named}', which is to be the {option}; {hint}")
    return named


def _parameter(sweep: str | None, known: LabelTable | None, path: Path | str | None) -> str | None:
    """Which parameter is swept."""
    if known is None:
        return sweep
    if sweep is None and len(known.names) > 1:
        raise TrecexamError(
            f"which column is swept? Name one of {_some(known.names)} with --sweep", path=path
        )
    if sweep is not None and sweep not in known.names:
        raise TrecexamError(f"no column '{sweep}', but {_some(known.names)}", path=path)
    return sweep or known.names[0]


def _sweep(
    systems: Sequence[System], options: ReportOptions, bounds: set[str | None]
) -> tuple[Sweep, list[str]]:
    assert options.sweep is not None
    series: Mapping[str, str] = {}
    notes = []
    if options.parameters is None:
        for each in systems:
            if len(each.parameters) > 1:
                raise TrecexamError(
                    f"run '{each.run_id}' has several values of {options.sweep}: {_some(each.parameters)}; "
                    "give the answers of each its own run_id"
                )
        values = {each.run_id: each.parameters[0] for each in systems if each.parameters}
        missing = (
            f'no line has a "{options.sweep}": name a field of the lines, or give a TSV file with '
            "--parameters"
        )
    else:
        column = options.parameters.names.index(options.sweep)
        rows = options.parameters.rows
        values = {name: row[column] for name, row in rows.items() if row[column]}
        # A column that is the same for all runs sets none apart.
        apart = [
            n
            for n in range(len(options.parameters.names))
            if n != column and len({rows[name][n] for name in values}) > 1
        ]
        series = {name: ", ".join(row[n] for n in apart if row[n]) for name, row in rows.items()}
        missing = "none of the runs in --parameters is among the answers' runs"
        absent = [name for name in rows if name not in {each.run_id for each in systems}]
        if absent:
            notes.append(f"{plural(len(absent), 'run')} of --parameters without answers: {_some(absent)}")
    along = swept(options.sweep, systems, values, series)
    if not along.points:
        raise TrecexamError(missing)
    left = [name for name in along.left_out if name not in bounds]
    if left:
        notes.append(f"{plural(len(left), 'run')} without {options.sweep}, not in sweep.tsv: {_some(left)}")
    return along, notes


def _report_json(report: RagvalReport) -> dict[str, Any]:
    """All of it with full precision, as report.json has it."""
    return {
        "runs": tables.systems_json(report.systems),
        "intervals": _MEANING["interval"],
        "test": _MEANING["test"],
        "bins": _MEANING["bins"],
        "significance": report.tables["significance"].records(),
        "baseline": report.baseline,
        "oracle": report.oracle,
        "bounds": tables.bounds_table(report.places).records(),
        "sweep": report.tables["sweep"].records() if report.sweep else None,
        "notes": list(report.notes),
        "rejected": _rejected_table(report.rejected).records(),
    }


def _rejected_table(rejected: Iterable[ConversionError]) -> Table:
    rows = ((error.path, error.line, error.reason, error.lost) for error in rejected)
    return Table(("file", "line", "reason", "lost"), tuple(rows))


def _some(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(f"'{name[:60]}'" for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
