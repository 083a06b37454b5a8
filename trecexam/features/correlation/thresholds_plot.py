"""Rank correlation with the official side, by the rating from which a passage counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from trecexam.errors import TrecexamError
from trecexam.features.correlation.paired_scores import paired_scores
from trecexam.features.correlation.tables import correlation_table
from trecexam.line.assessment import Assessment
from trecexam.line.evaluation import rubric_values
from trecexam.scores import measures as of_measures
from trecexam.scores.correlation import Correlation, correlate
from trecexam.scores.measures import COVER, at_min_rating
from trecexam.scores.rank_correlation.resampling import QueryDraws
from trecexam.tables.plots.limits import end_at_one
from trecexam.tables.plots.model import Plot, Size
from trecexam.tables.plots.style import BLUE, MUTED, ORANGE, WIDTH, grid
from trecexam.tables.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: (the line it belongs to, the measure, the official measure, min_rating), its correlation.
ThresholdPoint = tuple[tuple[str, str, str, int], "Correlation"]
_KEYS = ("line", "measure", "official_measure", "min_rating")
#: The second measure has its own thresholds only where runs x queries are no more than these.
_SMALL = 10_000
#: In place of the rating that a measure's name leaves open.
_OPEN = 999


def thresholds_of(track: Assessment, measure: str | None = None, official_measure: str | None = None) -> Plot:
    """Return the plot "thresholds" by these measures.

    Raises:
        TrecexamError: there is nothing to compare, or min_rating has no bearing on the measures.
        ValueError: a measure cannot be computed.
    """
    points = _points(track, measure, official_measure)
    if not points:
        names = measure or ", ".join(track.measures)
        raise TrecexamError(f"min_rating has no bearing on {names}; name another measure")
    return thresholds_plot(points, track.config.scores.min_rating)


def thresholds_plot(points: Sequence[ThresholdPoint], min_rating: int) -> Plot:
    """Return the plot with a line for each measure.

    Args:
        points: by line, then rising min_rating.
        min_rating: the track's setting.
    """
    table = correlation_table(points, _KEYS)
    official = points[0][0][2]
    best = max(points, key=lambda point: np.nan_to_num(point[1].kendall_tau.value, nan=-2.0))
    return Plot(
        "thresholds",
        f"Rank correlation by rating threshold, against {official}",
        "Kendall's tau between the automatic and the official leaderboard where ratings count from 1, 2, ... "
        "on, with 95% intervals over queries (none where a side has fewer than five distinct values). The "
        "dashed line is the track's min_rating. Choosing the threshold that looks best here is fitting it to "
        "these judgments.",
        f"The highest tau is {best[1].kendall_tau.value:.2f}, of {best[0][1]}, at min_rating {best[0][3]}; "
        f"the track has min_rating {min_rating}.",
        Table(table.header, table.rows),
        _draw,
        Size(WIDTH, 3.8),
        {"min_rating": min_rating},
    )


def _draw(figure: Figure, plot: Plot) -> None:
    axes = figure.subplots()
    table = plot.table
    columns = [
        table.header.index(n) for n in ("min_rating", "kendall_tau", "kendall_tau.low", "kendall_tau.high")
    ]
    lines = list(dict.fromkeys(str(row[0]) for row in table.rows))
    for number, line in enumerate(lines):
        rows = [row for row in table.rows if row[0] == line]
        x, tau, low, high = (np.array([row[c] for row in rows], float) for c in columns)
        x = x + 0.12 * (number - (len(lines) - 1) / 2)
        color, marker = ((BLUE, "o"), (ORANGE, "D"))[number % 2]
        axes.vlines(x, low, high, color=color, linewidth=1.2, alpha=0.6)
        axes.plot(x, tau, marker=marker, color=color, markersize=5, linewidth=1.2, label=line)
    axes.axvline(
        float(plot.settings["min_rating"] or 0), color=MUTED, linewidth=0.8, linestyle="--", zorder=0
    )
    ratings = sorted({int(row[columns[0]] or 0) for row in table.rows})
    axes.set_xticks(ratings, [str(rating) for rating in ratings])
    axes.set_xlim(ratings[0] - 0.4, ratings[-1] + 0.4)
    end_at_one(axes, "y")
    axes.set_xlabel("min_rating: a passage counts from this rating (t) on")
    axes.set_ylabel("Kendall's tau")
    # Above the picture: the intervals leave no room in it.
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(lines), frameon=False)
    grid(axes, "y")


def _points(track: Assessment, named: str | None, official_measure: str | None) -> list[ThresholdPoint]:
    """Return the first measures on which min_rating has a bearing, at each rating of the grader's scale."""
    failures = rubric_values(track).failures
    own_measures = [name for name in track.measures if str(of_measures.measure(name)) not in failures]
    lines = _lines(track, own_measures if named is None else [named])
    if len(track.runs) * len(track.bank.query_ids) > _SMALL:
        lines = lines[:1]
    # The track's own are evaluated already.
    officials = None if official_measure is None else [official_measure]
    ratings = range(1, track.grader.scale.max_rating + 1)
    draws = QueryDraws()
    return [
        (
            (line, paired.measure, paired.official_measure, paired.min_rating),
            correlate(paired.rubric, paired.official, draws=draws),
        )
        for name, line in lines
        for paired in paired_scores(track, [name], officials, ratings, first=True)
        if paired.min_rating is not None
    ]


def _lines(track: Assessment, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the first measure on labels and the first on items on which min_rating has a bearing.

    Returns:
        (the measure, what it is called where its rating is left open).
    """
    counts = track.config.scores.label == "count"
    lines: dict[bool, tuple[str, str]] = {}
    for name in names:
        rubric_measure = of_measures.measure(name)
        opened = at_min_rating(rubric_measure, _OPEN, counts=counts)
        if opened is not None:
            lines.setdefault(
                rubric_measure.NAME in COVER, (name, str(opened).replace(f"rel={_OPEN}", "rel=t"))
            )
    return list(lines.values())
