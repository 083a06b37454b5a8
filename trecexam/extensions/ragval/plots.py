"""Judged answers: mean scores with intervals and the two bounds, histograms of the sum, a swept parameter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from trecexam.extensions.ragval.judged_scores import BINS, SCORES
from trecexam.extensions.ragval.tables import histogram_table, intervals_table, sweep_table
from trecexam.tables.plots.model import Plot, Size
from trecexam.tables.plots.rows import draw_rows
from trecexam.tables.plots.style import BLUE, GREEN, ORANGE, WIDTH, grid, letters, short
from trecexam.tables.table import Table, Value
from trecexam.tables.terminal import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from trecexam.extensions.ragval.judged_scores import Sweep, System

#: More histograms than this are no picture; the table has all.
_HISTOGRAMS = 12
#: From the smallest to the largest value of a parameter; above it the axis is logarithmic.
_WIDE = 16
_MEANS = "Means over the answers that could be judged, with 95% intervals (Student's t over questions)."
#: The share of the axis that a number below it needs.
_ROOM = 0.07
#: More letters than this do not fit below the axis in a row, nor more values upright.
_LETTERS, _VALUES = 50, 25
_ROW, _MOST = 0.2, 8.2
_TICKS = {"truthfulness": range(1, 6), "relevance": range(1, 6), "sum": range(2, 11, 2)}


def ragval_plots(
    systems: Sequence[System], baseline: System | None, oracle: System | None, sweep: Sweep | None
) -> list[Plot]:
    """All plots that have data."""
    scored = [system for system in systems if len(system.scores)]
    if not scored:
        return []
    plots = [means_plot(scored, baseline, oracle), histogram_plot(scored)]
    if sweep is not None and any(len(point.system.scores) for point in sweep.points):
        plots.append(sweep_plot(sweep, baseline, oracle))
    return plots


def means_plot(systems: Sequence[System], baseline: System | None, oracle: System | None) -> Plot:
    """The three mean scores of each system, best on top.

    Args:
        systems: best first, each with a score.
    """
    best = systems[0]
    return Plot(
        "means",
        "Mean scores",
        f"{_MEANS}{_bounds_said(baseline, oracle)} Intervals that overlap do not say that two systems are "
        "equally good: they answer the same questions.",
        f"{len(systems)} systems; the best sum is that of {cut(best.run_id, 60)} with "
        f"{best.mean('sum').mean:.2f}.",
        intervals_table(systems),
        _draw_means,
        Size(WIDTH, min(_MOST, 1.0 + _ROW * max(len(systems), 3)), rows=True),
        _bounds(baseline, oracle),
    )


def _draw_means(figure: Figure, plot: Plot) -> None:
    rows = plot.table.rows
    names = list(dict.fromkeys(str(row[0]) for row in rows))
    for axes, name in zip(figure.subplots(1, len(SCORES), sharey=True), SCORES, strict=True):
        mean, low, high = (_numbers([row[n] for row in rows if row[1] == name]) for n in (3, 5, 6))
        _bound_lines(axes, plot, name, upright=True)
        draw_rows(axes, names, mean, low, high, whole=True)
        axes.set_xlim(*_limits(name))
        axes.set_xticks(_TICKS[name])
        axes.set_xlabel(name)
        if axes is not figure.axes[0]:
            axes.tick_params(axis="y", labelleft=False)
            axes.set_ylabel("")
    _bound_legend(figure)


def histogram_plot(systems: Sequence[System]) -> Plot:
    """Histogram of the sums of each system.

    Args:
        systems: best first, each with a score.
    """
    left = len(systems) - _HISTOGRAMS
    some = f" The {_HISTOGRAMS} best of {len(systems)} systems are drawn." if left > 0 else ""
    full = [system.histogram()[-1] / len(system.scores) for system in systems]
    return Plot(
        "histogram",
        "Sum of truthfulness and relevance",
        "Share of the answers that could be judged. A sum between two whole ones counts at the lower: 9.5 "
        f"is not yet a 10.{some}",
        f"{len(systems)} systems; {min(full):.0%} to {max(full):.0%} of their answers have the highest sum.",
        histogram_table(systems),
        _draw_histograms,
        Size(WIDTH, 0.6 + 0.85 * min(len(systems), _HISTOGRAMS), rows=True),
    )


def _draw_histograms(figure: Figure, plot: Plot) -> None:
    rows = plot.table.rows
    names = list(dict.fromkeys(str(row[0]) for row in rows))[:_HISTOGRAMS]
    drawn = figure.subplots(len(names), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, name in zip(drawn, names, strict=True):
        run_rows = [row for row in rows if row[0] == name]
        shares = [100 * float(row[3] or 0) for row in run_rows]
        axes.bar(BINS, shares, color=BLUE, width=0.8)
        axes.set_title(short(name), fontsize=letters(8), loc="left", pad=2)
        axes.set_xticks(BINS)
        axes.tick_params(axis="x", length=0)
        grid(axes, "y")
    drawn[-1].set_xlabel("truthfulness + relevance")
    figure.supylabel("% of the judged answers", fontsize=letters(9))


def sweep_plot(sweep: Sweep, baseline: System | None, oracle: System | None) -> Plot:
    """The three mean scores along a parameter."""
    points = [point for point in sweep.points if len(point.system.scores)]
    best = max(points, key=lambda point: point.system.mean("sum").mean)
    table = sweep_table(sweep)
    xs = [point.x for point in sweep.points]
    settings: dict[str, Value] = {"numeric": int(sweep.numeric), "parameter": sweep.parameter}
    return Plot(
        "sweep",
        f"Scores by {cut(sweep.parameter, 40)}",
        f"{_MEANS}{_bounds_said(baseline, oracle)}",
        f"{len(points)} systems; the best sum, {best.system.mean('sum').mean:.2f}, is at "
        f"{cut(best.value, 40)}.",
        Table(("x", *table.header), tuple((x, *row) for x, row in zip(xs, table.rows, strict=True))),
        _draw_sweep,
        Size(WIDTH, 5.6),
        settings | _bounds(baseline, oracle),
    )


def _draw_sweep(figure: Figure, plot: Plot) -> None:
    header, rows = plot.table.header, plot.table.rows
    values = {float(row[0] or 0): str(row[2]) for row in rows}
    numeric, ends = bool(plot.settings["numeric"]), (min(values), max(values))
    logarithmic = numeric and ends[0] > 0 and ends[1] / ends[0] >= _WIDE
    x = _numbers([row[0] for row in rows])
    # Texts have no order, and where a value comes twice there is no one line through the points.
    line = "o-" if numeric and len(values) == len(rows) else "o"
    drawn = figure.subplots(len(SCORES), 1, sharex=True)
    for axes, name in zip(drawn, SCORES, strict=True):
        mean, low, high = (
            _numbers([row[header.index(name + end)] for row in rows]) for end in ("", ".low", ".high")
        )
        _bound_lines(axes, plot, name, upright=False)
        axes.vlines(x, low, high, color=BLUE, linewidth=1.2, alpha=0.6)
        axes.plot(x, mean, line, color=BLUE, markersize=4, linewidth=1.2)
        axes.set_ylim(*_limits(name))
        axes.set_yticks(_TICKS[name])
        axes.set_ylabel(name)
        grid(axes)
    # The panels share their axis.
    across = drawn[-1]
    if logarithmic:
        across.set_xscale("log")
        across.set_xlim(ends[0] / (ends[1] / ends[0]) ** _ROOM, ends[1] * (ends[1] / ends[0]) ** _ROOM)
    else:
        margin = _ROOM * (ends[1] - ends[0]) or 0.5
        across.set_xlim(ends[0] - margin, ends[1] + margin)
    if len(values) > _VALUES and not numeric:
        across.set_xticks([])
    elif not numeric or _have_room(list(values), logarithmic=logarithmic):
        tick_labels = [cut(value, _LETTERS // 4, middle=True) for value in values.values()]
        across.set_xticks(list(values), tick_labels)
        across.minorticks_off()
        if sum(map(len, tick_labels)) > _LETTERS:
            across.tick_params(axis="x", rotation=90)
    across.set_xlabel(str(plot.settings["parameter"]))
    _bound_legend(figure)


def _have_room(values: Sequence[float], *, logarithmic: bool) -> bool:
    """Whether each value can be written below its place on the axis."""
    positions = np.sort(np.log(values) if logarithmic else np.array(values))
    return len(positions) < 2 or bool(np.diff(positions).min() >= _ROOM * np.ptp(positions))


def _numbers(values: Sequence[Value]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([math.nan if value is None else value for value in values], np.float64)


def _limits(name: str) -> tuple[float, float]:
    """The scale of a score and a little beside it, where intervals may still be seen to go on."""
    first, second, *_, last = _TICKS[name]
    margin = (second - first) / 5
    return first - margin, last + margin


def _bounds(baseline: System | None, oracle: System | None) -> dict[str, Value]:
    bounds: dict[str, Value] = {}
    for kind, system in (("baseline", baseline), ("oracle", oracle)):
        if system is not None and len(system.scores):
            bounds[kind] = system.run_id
            bounds |= {f"{kind} {name}": system.mean(name).mean for name in SCORES}
    return bounds


def _bounds_said(baseline: System | None, oracle: System | None) -> str:
    lines = [
        f"the {line} line is {cut(system.run_id, 40)}, the {kind}"
        for line, kind, system in (
            ("dashed orange", "baseline", baseline),
            ("dotted green", "oracle", oracle),
        )
        if system is not None and len(system.scores)
    ]
    text = "; ".join(lines)
    return f" {text[0].upper()}{text[1:]}." if text else ""


def _bound_lines(axes: Axes, plot: Plot, name: str, *, upright: bool) -> None:
    for kind, colour, style in (("baseline", ORANGE, "--"), ("oracle", GREEN, ":")):
        if kind in plot.settings:
            at = float(plot.settings[f"{kind} {name}"] or 0)
            draw = axes.axvline if upright else axes.axhline
            system = str(plot.settings[kind])
            label = kind if system == kind else f"{short(system)} ({kind})"
            draw(at, color=colour, linestyle=style, linewidth=1.3, zorder=1, label=label)


def _bound_legend(figure: Figure) -> None:
    handles, labels = figure.axes[0].get_legend_handles_labels()
    if handles:
        figure.legend(
            handles, labels, loc="outside upper center", ncols=2, frameon=False, fontsize=letters(8)
        )
