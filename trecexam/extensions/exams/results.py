"""Results of a fit and of an improvement: tables, facts and notes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from trecexam.extensions.exams.irt.estimation.marginal import Z_95
from trecexam.extensions.exams.irt.fitting import Fit, constant
from trecexam.extensions.exams.irt.improvement import Improvement, least_discriminating
from trecexam.extensions.exams.irt.model import GRID, Floats, exam_information, item_information
from trecexam.extensions.exams.irt.settings import CERTAIN_DIGITS
from trecexam.extensions.exams.responses import Exam
from trecexam.features.correlation.comparison import correlation_table
from trecexam.results.result import Result
from trecexam.results.table import Layout, Table, Value
from trecexam.results.text import CHANGES, METHOD, Note, plural, shorten_list
from trecexam.scores.correlation import Correlation
from trecexam.scores.values import rounded


@dataclass(frozen=True, eq=False)
class ExamFit(Result):
    """A fitted exam: abilities of examinees, difficulty and discrimination of items.

    Attributes:
        exam: the responses.
        fit: the estimates.
        notes: notes on how to read the fit, and on its quality.
        official: for a track, ("theta" or "accuracy", official measure, correlation), without intervals,
            since abilities have no values per query; () without an official side.
    """

    exam: Exam
    fit: Fit
    notes: tuple[str, ...] = ()
    official: tuple[tuple[str, str, Correlation], ...] = ()

    @classmethod
    def of(cls, exam: Exam, fit: Fit, official: Sequence[tuple[str, str, Correlation]] = ()) -> Self:
        """Return the result with its notes."""
        return cls(exam, fit, tuple(_notes(exam, fit, official)), tuple(official))

    def _declare(self) -> dict[str, Table]:
        """`examinees`, a leaderboard; the tables are the files of `exam fit`."""
        by_name = {
            "examinees": self._examinees(),
            "items": self._items(),
            "information": self._information(),
            "item_quality": self._item_quality(),
        }
        if self.fit.components:
            by_name["components"] = self._components()
        by_name = {name: rounded(table, CERTAIN_DIGITS) for name, table in by_name.items()}
        if self.official:
            pairs = [((ours, theirs), correlation) for ours, theirs, correlation in self.official]
            by_name["correlation"] = correlation_table(pairs, ("measure", "official_measure"))
        return by_name

    @property
    def facts(self) -> dict[str, Any]:
        """The model, the quality of its fit, and its settings; results rounded to certain digits."""
        f, s = self.fit, self.fit.settings
        values: dict[str, Any] = {
            "model": s.model,
            "log_likelihood": _certain(f.log_likelihood),
            "rmse": _certain(f.errors.model),
            "rmse_baseline": _certain(f.errors.baseline),
            "n_items": len(f.a),
            "n_examinees": len(f.theta),
            "converged": f.converged,
            "iterations": f.iterations,
            "seconds": f.seconds,
            "n_responses": int(f.n.sum()),
            "rmse_items": _certain(f.errors.model_items),
            "rmse_baseline_items": _certain(f.errors.baseline_items),
            "anchor": s.anchor,
            "theta_mean": _certain(f.theta.mean()),
            "theta_sd": _certain(f.theta.std()),
            "bounds": {name: list(pair) for name, pair in s.bounds.items()},
            "start": dict(s.start),
            "priors": {name: list(pair) for name, pair in s.priors.items()},
            "at_bound": {
                name: int(which.sum())
                for name, which in f.bound.items()
                if s.bounds[name][0] < s.bounds[name][1]
            },
            "information_at_mean": {name: _certain(value) for name, value in _information_at_mean(f).items()},
        }
        if f.components:
            values |= {"mean": _certain(f.mean), "se_mean": _certain(f.se_mean)}
        return values

    def _examinees(self) -> Table:
        """Return a row per examinee, best first; theta +- 1.96 se is its 95% interval."""
        f, names = self.fit, self.exam.examinees
        certain = [round(theta, CERTAIN_DIGITS) for theta in f.theta.tolist()]
        order = sorted(range(len(names)), key=lambda at: (-certain[at], names[at]))
        best = sorted(certain, reverse=True)
        low, high = (f.theta + side * Z_95 * f.se_theta for side in (-1, 1))
        columns = [column.tolist() for column in (f.theta, low, high, f.se_theta, f.accuracy)]
        rows: list[tuple[Value, ...]] = [
            (best.index(certain[at]) + 1, names[at], *(column[at] for column in columns)) for at in order
        ]
        header = ("rank", "examinee", "theta", "theta.low", "theta.high", "se", "accuracy")
        return Table(header, tuple(rows), layout=Layout(("rank", "examinee")))

    def _items(self) -> Table:
        """Return a row per item, in the exam's order.

        A parameter at a bound or not fitted has no standard error.
        """
        f = self.fit
        columns = (f.a, f.b, f.c, f.se_a, f.se_b, f.se_c, f.n)
        rows = zip(self.exam.items, *(column.tolist() for column in columns), strict=True)
        return Table(("item", "a", "b", "c", "se_a", "se_b", "se_c", "n"), tuple(rows))

    def _components(self) -> Table:
        """Return a row per level of each component, whose abilities sum to 0; `se` as for examinees."""
        rows = [
            (part.name, *row)
            for part in self.fit.components
            for row in zip(part.levels, part.theta.tolist(), part.se.tolist(), strict=True)
        ]
        return Table(("component", "level", "theta", "se"), tuple(rows))

    def _information(self) -> Table:
        """Return abilities from -4 to 4, and the exam's information there.

        `test` is for all items together, `item` for the mean item, both with `.compat`, the 2PL form a^2 p (1
        - p); `GROUPING:GROUP` is for the mean item of a group.
        """
        f = self.fit
        whole = {
            name: exam_information(GRID, f.a, f.b, f.c, compat=compat)
            for name, compat in (("", False), (".compat", True))
        }
        curves: dict[str, Floats] = {f"test{name}": curve for name, curve in whole.items()}
        curves |= {f"item{name}": curve / len(f.a) for name, curve in whole.items()}
        for grouping, groups in self.exam.groups.items():
            for group, item_indices in groups.items():
                part = np.array(item_indices, np.intp)
                information = exam_information(GRID, f.a[part], f.b[part], f.c[part])
                curves[f"{grouping}:{group}"] = information / len(part)
        rows = zip(GRID.tolist(), *(curve.tolist() for curve in curves.values()), strict=True)
        return Table(("theta", *curves), tuple(rows))

    def _item_quality(self) -> Table:
        """Return a row per item, least discriminating first (`least_discriminating`).

        `information` is the mean at the examinees' abilities.
        """
        exam, f = self.exam, self.fit
        information = item_information(f.theta, f.a, f.b, f.c).mean(axis=0).tolist()
        shares = np.nanmean(exam.values, axis=0).tolist()
        rows: list[tuple[Value, ...]] = []
        for rank, n in enumerate(least_discriminating(f, constant(exam.values)).tolist(), 1):
            item = exam.items[n]
            values = float(f.a[n]), float(f.b[n]), shares[n], information[n]
            rows.append((rank, item, exam.queries.get(item, ""), *values, exam.texts.get(item, "")))
        header = ("rank", "item", "query_id", "a", "b", "share", "information", "text")
        return Table(header, tuple(rows))


def _certain(value: Any) -> float:
    return round(float(value), CERTAIN_DIGITS) + 0.0


def _information_at_mean(f: Fit) -> dict[str, float]:
    """Return the exam's information at the examinees' mean ability, in both forms."""
    at = float(f.theta.mean())
    exact, compat = (float(exam_information([at], f.a, f.b, f.c, compat=form)[0]) for form in (False, True))
    return {"theta": at, "test": exact, "test.compat": compat}


def _notes(exam: Exam, f: Fit, official: Sequence[tuple[str, str, Correlation]]) -> Iterator[str]:
    """Yield the notes of a fit, one per line."""
    yield from (*exam.notes, *(Note(line, CHANGES) for line in f.notes))
    fit = (
        f"{f.settings.model.upper()} of {len(f.theta):,} examinees x {plural(len(f.a), 'question')}: "
        f"log-likelihood {f.log_likelihood:.2f} after {plural(f.iterations, 'iteration')}; RMSE "
        f"{f.errors.model:.3f}, of the examinees' means {f.errors.baseline:.3f}"
    )
    yield from (Note(line, METHOD) for line in (fit, _information_note(f)))
    taus = [
        f"{correlation.kendall_tau.value:.3f} with {theirs}"
        for ours, theirs, correlation in official
        if ours == "theta"
    ]
    if taus:
        yield Note(f"Kendall's tau of abilities: {shorten_list(taus, 4, quote='')}", CHANGES)


def _information_note(f: Fit) -> str:
    """Return a note on the error of the 2PL form of the information."""
    information = _information_at_mean(f)
    line = f"information at the mean ability {information['theta']:.2f}: {information['test']:.2f}"
    if not f.c.any():
        return line + " (without guessing, the released a^2 p (1 - p) is the same)"
    more = information["test.compat"] / information["test"] - 1 if information["test"] else math.inf
    return (
        line + f"; the released a^2 p (1 - p), which ignores guessing, has {information['test.compat']:.2f} "
        f"({more:+.0%})"
    )


@dataclass(frozen=True, eq=False)
class ImprovedExam(Result):
    """An exam's improvement.

    Attributes:
        improvement: the steps, and the reason for the end.
        fits: the fit after each step; the first is of the whole exam.
        notes: notes of the whole exam, and the reason for the end.
    """

    improvement: Improvement
    fits: tuple[ExamFit, ...]
    notes: tuple[str, ...]

    @property
    def folders(self) -> list[str]:
        """The name of each step's folder."""
        digits = len(str(len(self.fits) - 1))
        return [f"step-{number:0{digits}}" for number in range(len(self.fits))]

    def _declare(self) -> dict[str, Table]:
        """Declare a row per step; the first is the whole exam."""
        items = self.fits[0].exam.items
        header = (
            *("step", "folder", "n_items", "n_dropped", "information", "information.compat", "mean_a"),
            *("log_likelihood", "rmse", "rmse_baseline", "converged", "dropped"),
        )
        rows: list[tuple[Value, ...]] = [
            (
                number,
                folder,
                len(step.items),
                len(step.dropped),
                step.information,
                step.compat,
                float(step.fit.a.mean()),
                step.fit.log_likelihood,
                step.fit.errors.model,
                step.fit.errors.baseline,
                str(step.fit.converged).lower(),
                " ".join(items[item_index] for item_index in step.dropped),
            )
            for number, (step, folder) in enumerate(zip(self.improvement.steps, self.folders, strict=True))
        ]
        return {"steps": rounded(Table(header, tuple(rows)), CERTAIN_DIGITS)}

    @property
    def facts(self) -> dict[str, Any]:
        """The reason for the end of the steps."""
        return {"stopped": self.improvement.stopped}
