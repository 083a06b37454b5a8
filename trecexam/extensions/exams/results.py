"""Results of a fit and of an improvement: tables, facts and notes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trecexam.extensions.exams import tables
from trecexam.extensions.exams.irt.exam import Exam, FittedExam
from trecexam.extensions.exams.irt.improvement import Improvement
from trecexam.extensions.exams.irt.settings import CERTAIN_DIGITS
from trecexam.features.correlation.comparison import correlation_table
from trecexam.results.notes import CHANGES, METHOD, Note
from trecexam.results.result import Result
from trecexam.results.table import Table, rounded
from trecexam.results.text import plural, shorten_list
from trecexam.scores.correlation import Correlation


@dataclass(frozen=True, eq=False)
class ExamFit(Result, FittedExam):
    """A fitted exam: abilities of examinees, difficulty and discrimination of items.

    Attributes:
        notes: what one must know to read it, and how well it fits.
        official: of a track, ("theta" or "accuracy", official measure, how far the two agree); () without an
            official side, as abilities have no values per query there are no intervals.
    """

    notes: tuple[str, ...] = ()
    official: tuple[tuple[str, str, Correlation], ...] = ()

    def _declare(self) -> dict[str, Table]:
        """`abilities`, the examinees as a leaderboard; the other tables are the files of `exam fit`."""
        of_fit = {
            "abilities": tables.abilities_table(self),
            "items": tables.items_table(self),
            "examinees": tables.examinees_table(self),
            "information": tables.information_table(self),
            "item_quality": tables.quality_table(self),
        }
        if self.fit.components:
            of_fit["components"] = tables.components_table(self)
        of_fit = {name: rounded(table, CERTAIN_DIGITS) for name, table in of_fit.items()}
        if self.exam.queries:
            of_fit["matrix"] = self._matrix()
        if self.official:
            pairs = [((ours, theirs), correlation) for ours, theirs, correlation in self.official]
            of_fit["correlation"] = correlation_table(pairs, ("measure", "official_measure"))
        return of_fit

    @property
    def facts(self) -> dict[str, Any]:
        """The model, its fit and its settings."""
        values = tables.fit_json(self)
        # Of these there are tables, and the notes.
        about = values.pop("information")
        return {name: values[name] for name in values if name not in ("notes", "components")} | {
            "information_at_mean": about
        }

    def _matrix(self) -> Table:
        """The responses: 1, 0, or None."""
        rows = [
            (name, *(None if value != value else int(value) for value in row))
            for name, row in zip(self.exam.examinees, self.exam.values.tolist(), strict=True)
        ]
        return Table(("examinee", *self.exam.items), tuple(rows))


def told(fitted: ExamFit) -> Iterator[str]:
    """The notes of a fit, one per line."""
    f = fitted.fit
    yield from (*fitted.exam.notes, *(Note(line, CHANGES) for line in f.notes))
    fit = (
        f"{f.settings.model.upper()} of {len(f.theta):,} examinees x {plural(len(f.a), 'question')}: "
        f"log-likelihood {f.log_likelihood:.2f} after {plural(f.iterations, 'iteration')}; RMSE "
        f"{f.errors.model:.3f}, of the examinees' means {f.errors.baseline:.3f}"
    )
    yield from (Note(line, METHOD) for line in (fit, tables.information_line(fitted)))
    taus = [
        f"{correlation.kendall_tau.value:.3f} with {theirs}"
        for ours, theirs, correlation in fitted.official
        if ours == "theta"
    ]
    if taus:
        yield Note(f"Kendall's tau of abilities: {shorten_list(taus, 4, quote='')}", CHANGES)


@dataclass(frozen=True, eq=False)
class ImprovedExam(Result):
    """An exam's improvement.

    Attributes:
        fits: the exam that was left after each step, fitted; the first is the whole one.
        notes: those of the whole exam, and why there are no more steps.
    """

    exam: Exam
    improvement: Improvement
    fits: tuple[ExamFit, ...]
    notes: tuple[str, ...]

    @property
    def folders(self) -> list[str]:
        """The name of each step's folder."""
        digits = len(str(len(self.fits) - 1))
        return [f"step-{number:0{digits}}" for number in range(len(self.fits))]

    def _declare(self) -> dict[str, Table]:
        """A row per step."""
        steps = tables.steps_table(self.improvement, self.exam.items, self.folders)
        return {"steps": rounded(steps, CERTAIN_DIGITS)}

    @property
    def facts(self) -> dict[str, Any]:
        """The reason why the steps end."""
        return {"stopped": self.improvement.stopped}
