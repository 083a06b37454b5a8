"""Tables and notes of a fitted exam."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from trecexam.extensions.exams.irt.estimation.marginal import Z_95
from trecexam.extensions.exams.irt.exam import FittedExam, rest_correlations
from trecexam.extensions.exams.irt.fitting import constant
from trecexam.extensions.exams.irt.improvement import Improvement, least_discriminating
from trecexam.extensions.exams.irt.model import GRID, item_information
from trecexam.extensions.exams.irt.model import exam_information as of_all
from trecexam.extensions.exams.irt.settings import CERTAIN_DIGITS
from trecexam.results.table import Layout, Table, Value

ITEM_COLUMNS = ("item", "a", "b", "c", "se_a", "se_b", "se_c", "n")
QUALITY_COLUMNS = (
    "rank",
    "item",
    "query_id",
    "a",
    "b",
    "share",
    "rest_correlation",
    "information",
    "text",
)
STEP_COLUMNS = (
    "step",
    "folder",
    "n_items",
    "n_dropped",
    "highest_a_dropped",
    "information",
    "information.compat",
    "mean_a",
    "log_likelihood",
    "rmse",
    "rmse_baseline",
    "converged",
    "dropped",
)


def items_table(fitted: FittedExam) -> Table:
    """A row per item, in the exam's order. A parameter at a bound or not fitted has no standard error."""
    f = fitted.fit
    columns = (f.a, f.b, f.c, f.se_a, f.se_b, f.se_c)
    rows = zip(fitted.exam.items, *(column.tolist() for column in columns), f.n.tolist(), strict=True)
    return Table(ITEM_COLUMNS, tuple(rows))


def examinees_table(fitted: FittedExam) -> Table:
    """A row per examinee, in the matrix's order; theta +- 1.96 se is its 95% interval."""
    f = fitted.fit
    columns = (f.theta.tolist(), f.se_theta.tolist(), f.accuracy.tolist())
    return Table(
        ("examinee", "theta", "se", "accuracy"), tuple(zip(fitted.exam.examinees, *columns, strict=True))
    )


def abilities_table(fitted: FittedExam) -> Table:
    """The examinees as a leaderboard, best first, with 95% intervals."""
    f, names = fitted.fit, fitted.exam.examinees
    certain = [round(theta, CERTAIN_DIGITS) for theta in f.theta.tolist()]
    order = sorted(range(len(names)), key=lambda at: (-certain[at], names[at]))
    best = sorted(certain, reverse=True)
    low, high = (f.theta + side * Z_95 * f.se_theta for side in (-1, 1))
    columns = [column.tolist() for column in (f.theta, low, high, f.accuracy)]
    rows: list[tuple[Value, ...]] = [
        (best.index(certain[at]) + 1, names[at], *(column[at] for column in columns)) for at in order
    ]
    header = ("rank", "examinee", "theta", "theta.low", "theta.high", "accuracy")
    return Table(header, tuple(rows), layout=Layout(("rank", "examinee")))


def components_table(fitted: FittedExam) -> Table:
    """A row per level of each component, whose abilities sum to 0; `se` as in `examinees_table`."""
    rows = [
        row
        for part in fitted.fit.components
        for row in zip(
            [part.name] * len(part.levels), part.levels, part.theta.tolist(), part.se.tolist(), strict=True
        )
    ]
    return Table(("component", "level", "theta", "se"), tuple(rows))


def information_table(fitted: FittedExam) -> Table:
    """Abilities from -4 to 4, and the exam's information there.

    `test` is of all items together, `item` of the mean item, both with `.compat`, the 2PL form a^2 p (1 - p);
    `GROUPING:GROUP` is of the mean item of a group.
    """
    curves = dict(information_curves(fitted))
    rows = zip(GRID.tolist(), *(curve.tolist() for curve in curves.values()), strict=True)
    return Table(("theta", *curves), tuple(rows))


def information_curves(fitted: FittedExam) -> Iterator[tuple[str, Any]]:
    """The curves of `information_table`, by their names."""
    f = fitted.fit
    whole = [of_all(GRID, f.a, f.b, f.c, compat=compat) for compat in (False, True)]
    yield from zip(("test", "test.compat"), whole, strict=True)
    yield from zip(("item", "item.compat"), (curve / len(f.a) for curve in whole), strict=True)
    for grouping, groups in fitted.exam.groups.items():
        for group, item_indices in groups.items():
            part = np.array(item_indices, np.intp)
            yield f"{grouping}:{group}", item_information(GRID, f.a[part], f.b[part], f.c[part]).mean(axis=1)


def quality_table(fitted: FittedExam) -> Table:
    """A row per item, least discriminating first (`least_discriminating`).

    `rest_correlation` is NaN where an item's responses are the same for all. Below 0, weaker examinees get
    the item right more often. `information` is the mean at the examinees' abilities.
    """
    exam, f = fitted.exam, fitted.fit
    information = item_information(f.theta, f.a, f.b, f.c).mean(axis=0).tolist()
    rest = rest_correlations(exam.values).tolist()
    shares = np.nanmean(exam.values, axis=0).tolist()
    rows: list[tuple[Value, ...]] = []
    for rank, n in enumerate(least_discriminating(f, constant(exam.values)).tolist(), 1):
        item = exam.items[n]
        values = float(f.a[n]), float(f.b[n]), shares[n], rest[n], information[n]
        rows.append((rank, item, exam.queries.get(item, ""), *values, exam.texts.get(item, "")))
    return Table(QUALITY_COLUMNS, tuple(rows))


def fit_json(fitted: FittedExam) -> dict[str, Any]:
    """What was fitted, how well, and with which settings; results in their certain digits."""
    f, s = fitted.fit, fitted.fit.settings
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
            name: int(which.sum()) for name, which in f.bound.items() if s.bounds[name][0] < s.bounds[name][1]
        },
        "information": {name: _certain(value) for name, value in information_json(fitted).items()},
        "notes": [*fitted.exam.notes, *f.notes],
    }
    if f.components:
        values |= {
            "components": [part.name for part in f.components],
            "mean": _certain(f.mean),
            "se_mean": _certain(f.se_mean),
        }
    return values


def _certain(value: Any) -> float:
    return round(float(value), CERTAIN_DIGITS) + 0.0


def information_json(fitted: FittedExam) -> Mapping[str, float]:
    """The exam's information at the examinees' mean ability, in both forms."""
    f = fitted.fit
    at = float(f.theta.mean())
    exact, compat = (float(of_all([at], f.a, f.b, f.c, compat=form)[0]) for form in (False, True))
    return {"theta": at, "test": exact, "test.compat": compat}


def information_line(fitted: FittedExam) -> str:
    """A note on the error of the 2PL form of the information."""
    information = information_json(fitted)
    line = f"information at the mean ability {information['theta']:.2f}: {information['test']:.2f}"
    if not fitted.fit.c.any():
        return line + " (without guessing, the released a^2 p (1 - p) is the same)"
    more = information["test.compat"] / information["test"] - 1 if information["test"] else math.inf
    return (
        line + f"; the released a^2 p (1 - p), which ignores guessing, has {information['test.compat']:.2f} "
        f"({more:+.0%})"
    )


def steps_table(improvement: Improvement, items: tuple[str, ...], folders: list[str]) -> Table:
    """A row per step of an improvement; the first is the whole exam."""
    rows: list[tuple[Value, ...]] = []
    highest = [math.nan] + [
        float(before.fit.a[np.isin(before.items, step.dropped)].max())
        for before, step in zip(improvement.steps, improvement.steps[1:], strict=False)
    ]
    for number, (step, folder, most) in enumerate(zip(improvement.steps, folders, highest, strict=True)):
        rows.append(
            (
                number,
                folder,
                len(step.items),
                len(step.dropped),
                most,
                step.information,
                step.compat,
                float(step.fit.a.mean()),
                step.fit.log_likelihood,
                step.fit.errors.model,
                step.fit.errors.baseline,
                str(step.fit.converged).lower(),
                " ".join(items[item_index] for item_index in step.dropped),
            )
        )
    return Table(STEP_COLUMNS, tuple(rows))
