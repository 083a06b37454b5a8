"""Plots of a fitted exam: item curves, information, abilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trecexam.extensions.exams.irt.improvement import Improvement
from trecexam.extensions.exams.irt.model import GRID, exam_information, probability
from trecexam.extensions.exams.irt.settings import CERTAIN_DIGITS
from trecexam.extensions.exams.results import ExamFit
from trecexam.results.plots.style import (
    BLUE,
    MUTED,
    ORANGE,
    SEQUENTIAL,
    draw_rows,
    grid,
    letters,
)
from trecexam.results.plots.style import GRID as PALE
from trecexam.results.result import Plot
from trecexam.results.table import Table
from trecexam.results.terminal import cut
from trecexam.scores.values import rounded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Maximum number of curves; items are sampled evenly by discrimination.
_CURVES = 100
#: Number of highlighted curves of the most and of the least discriminating items.
_MARKED = 3
_ROW, _MOST = 0.155, 8.2
#: Maximum number of names inside a plot (more go beside it), and of named curves, first and last included.
_INSIDE, _TOLD = 4, 12


def curves_plot(fitted: ExamFit) -> Plot:
    """Plot item characteristic curves: the probability of a right response by ability."""
    f = fitted.fit
    best = np.lexsort((np.arange(len(f.a)), -np.round(f.a, 9)))
    drawn = best[np.unique(np.linspace(0, len(best) - 1, min(_CURVES, len(best))).round().astype(int))]
    chances = probability(GRID, f.a[drawn], f.b[drawn], f.c[drawn])
    names = [fitted.exam.items[n] for n in drawn]
    rows = tuple((theta, *row) for theta, row in zip(GRID.tolist(), chances.tolist(), strict=True))
    some = "" if len(drawn) == len(best) else f" {len(drawn)} of the {len(best)} items are drawn."
    return Plot(
        "item_curves",
        f"Item characteristic curves ({f.settings.model.upper()})",
        "The chance of a right response by ability. Blue: the items that discriminate most; orange, dashed: "
        f"least. The marks below are the examinees.{some}",
        f"{len(best)} items; discrimination from {f.a.min():.2f} to {f.a.max():.2f}, difficulty from "
        f"{f.b.min():.2f} to {f.b.max():.2f}.",
        rounded(Table(("theta", *names), rows), CERTAIN_DIGITS),
        _draw_curves,
        3.4,
        {"examinees": " ".join(f"{theta:.3f}" for theta in f.theta)},
    )


def _draw_curves(figure: Figure, plot: Plot) -> None:
    axes = figure.subplots()
    values = np.array(plot.table.rows, float)
    last = values.shape[1] - 1
    marked = min(_MARKED, last // 2)
    for n in range(1, last + 1):
        first, late = n <= marked, n > last - marked
        colour = BLUE if first else ORANGE if late else MUTED
        plain = not (first or late)
        axes.plot(
            values[:, 0],
            values[:, n],
            # Distinguishable in grey, too.
            "--" if late else "-",
            color=colour,
            linewidth=0.5 if plain else 1.6,
            alpha=0.35 if plain else 1.0,
            zorder=2 if plain else 3,
        )
    thetas = np.array(str(plot.settings["examinees"]).split(), float)
    axes.plot(thetas, np.full(len(thetas), -0.03), "|", color=MUTED, markersize=6)
    axes.set_ylim(-0.06, 1)
    axes.set_xlabel("ability")
    axes.set_ylabel("chance of a right response")
    grid(axes)


def information_plot(fitted: ExamFit) -> Plot:
    """Plot the exam's information by ability, and the 2PL form if different."""
    f = fitted.fit
    guessed = bool(f.c.any())
    exact = exam_information(GRID, f.a, f.b, f.c)
    curves = {"information": exact}
    if guessed:
        curves["as released: a²p(1-p)"] = exam_information(GRID, f.a, f.b, f.c, compat=True)
    also = (
        " The dashed curve is the form in the released code, which counts lucky guesses as knowledge."
        if guessed
        else ""
    )
    return _curves_plot(
        "information",
        "Test information",
        "Fisher information of all items together; the standard error of an ability is 1 over its root. The "
        f"marks below are the examinees.{also}",
        f"The exam tells most at an ability of {GRID[exact.argmax()]:.2f}, with {exact.max():.2f}.",
        curves,
        f.theta.tolist(),
    )


def steps_plot(improvement: Improvement) -> Plot:
    """Plot the mean item's information at every step of an improvement."""
    curves = {}
    for number, step in enumerate(improvement.steps):
        f = step.fit
        curves[f"step {number}: {len(f.a)} items"] = exam_information(GRID, f.a, f.b, f.c) / len(f.a)
    first, last = improvement.steps[0], improvement.steps[-1]
    return _curves_plot(
        "information_by_step",
        "Information by step",
        "The information of the mean item of the rest after each step: a curve above the one before says "
        "that the items dropped were worse than the others.",
        f"{len(improvement.steps) - 1} steps from {len(first.items)} to {len(last.items)} items; at the "
        f"examinees' abilities the mean item's information goes from {first.information:.3f} to "
        f"{last.information:.3f}.",
        curves,
        last.fit.theta.tolist(),
    )


def _curves_plot(
    name: str,
    title: str,
    caption: str,
    summary: str,
    curves: Mapping[str, Any],
    thetas: Sequence[float],
) -> Plot:
    columns = [curve.tolist() for curve in curves.values()]
    return Plot(
        name,
        title,
        caption,
        summary,
        rounded(Table(("theta", *curves), tuple(zip(GRID.tolist(), *columns, strict=True))), CERTAIN_DIGITS),
        _draw_information,
        3.4,
        {"examinees": " ".join(f"{theta:.3f}" for theta in thetas)},
    )


def _draw_information(figure: Figure, plot: Plot) -> None:
    import matplotlib

    axes = figure.subplots()
    values = np.array(plot.table.rows, float)
    names = plot.table.header[1:]
    of_steps = plot.name == "information_by_step"
    shades = matplotlib.colormaps[SEQUENTIAL](np.linspace(0.35, 1, len(names)))
    styles = [(shade, "-") for shade in shades] if of_steps else [(BLUE, "-"), (ORANGE, "--")]
    lines = []
    for n, (colour, line) in enumerate(styles[: len(names)], 1):
        lines += axes.plot(values[:, 0], values[:, n], line, color=colour, linewidth=1.5)
    thetas = np.array(str(plot.settings["examinees"]).split(), float)
    top = float(values[:, 1:].max()) or 1.0
    axes.plot(thetas, np.full(len(thetas), -0.03 * top), "|", color=MUTED, markersize=6)
    axes.set_ylim(-0.07 * top, 1.05 * top)
    axes.set_xlabel("ability")
    axes.set_ylabel("information of the mean item" if of_steps else "information")
    if len(names) > 1:
        legend_indices = np.linspace(0, len(names) - 1, min(len(names), _TOLD)).round()
        # A long legend would cover the curves.
        legend_place: dict[str, Any] = (
            {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if len(legend_indices) > _INSIDE else {}
        )
        axes.legend(
            [lines[int(n)] for n in legend_indices],
            [names[int(n)] for n in legend_indices],
            frameon=False,
            fontsize=letters(7.5),
            **legend_place,
        )
    grid(axes)


def abilities_plot(fitted: ExamFit) -> Plot:
    """Plot the examinees' abilities with intervals, best on top."""
    rows = tuple(row[1:5] for row in fitted.tables["examinees"].rows)
    bare = sum(row[2] != row[2] for row in rows)
    without = f" {bare} at a bound have no interval." if bare else ""
    return Plot(
        "abilities",
        "Abilities",
        "Abilities and their 95% intervals, of the posterior with all items integrated out; they do not "
        f"include the uncertainty from choosing other items.{without}",
        f"{len(rows)} examinees; the ablest is {cut(str(rows[0][0]), 60)} with {rows[0][1]:.2f}.",
        Table(("examinee", "theta", "theta.low", "theta.high"), rows, digits=CERTAIN_DIGITS),
        _draw_abilities,
        min(_MOST, 0.7 + _ROW * max(len(rows), 3)),
        rows=True,
    )


def _draw_abilities(figure: Figure, plot: Plot) -> None:
    rows = plot.table.rows
    axes = figure.subplots()
    theta, low, high = np.array([row[1:] for row in rows], float).T
    axes.axvline(0, color=PALE, linewidth=0.8, zorder=1)
    draw_rows(axes, [str(row[0]) for row in rows], theta, low, high)
    axes.set_xlabel("ability")
