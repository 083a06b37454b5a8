"""Rank correlation with the official side, by the rating from which a passage counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from trecexam.errors import TrecexamError
from trecexam.features.correlation.comparison import correlation_table
from trecexam.features.correlation.paired_scores import paired_scores
from trecexam.grades.evaluation import rubric_values
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.plots.style import BLUE, GRID, end_at_one, grid
from trecexam.results.result import Plot
from trecexam.scores import measures as of_measures
from trecexam.scores.correlation import Correlation, correlate
from trecexam.scores.rank_correlation import QueryDraws

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: ((measure, official measure, min_rating), correlation).
ThresholdPoint = tuple[tuple[str, str, int], Correlation]
_KEYS = ("measure", "official_measure", "min_rating")


def thresholds_of(
    track: GradedTrack, measure: str | None = None, official_measure: str | None = None
) -> Plot:
    """Return the plot "thresholds" of a measure; None means the first that depends on min_rating."""
    counts, failures = track.config.scores.label == "count", rubric_values(track).failures
    for name in track.measures if measure is None else [measure]:
        parsed = of_measures.measure(name)
        if str(parsed) in failures and measure is None:
            continue
        if of_measures.at_min_rating(parsed, 1, counts=counts) is not None:
            break
    else:
        names = measure or ", ".join(track.measures)
        raise TrecexamError(f"min_rating has no bearing on {names}; name another measure")
    officials = None if official_measure is None else [official_measure]
    ratings, draws = range(1, track.grader.scale.max_rating + 1), QueryDraws()
    pairs = paired_scores(track, [name], officials, ratings)
    points = [
        ((pair.measure, pair.official_measure, rating), correlate(pair.rubric, pair.official, draws=draws))
        for pair in pairs
        if (rating := pair.min_rating) is not None and pair.official_measure == pairs[0].official_measure
    ]
    return thresholds_plot(points, track.config.scores.min_rating)


def thresholds_plot(points: Sequence[ThresholdPoint], min_rating: int) -> Plot:
    """Return the plot of a measure; points are by rising min_rating, `min_rating` is the track's."""
    (first, official, _), (last, *_) = points[0][0], points[-1][0]
    measures = first if first == last else f"{first} to {last}"
    best = max(points, key=lambda point: np.nan_to_num(point[1].kendall_tau.value, nan=-2.0))
    return Plot(
        "thresholds",
        f"Rank correlation by rating threshold: {measures} against {official}",
        "Kendall's tau between the automatic and the official leaderboard where ratings count from 1, 2, ... "
        "on, with 95% intervals over queries (none where a side has fewer than five distinct values). The "
        "track's min_rating is shaded. Choosing the threshold that looks best here is fitting it to these "
        "judgments.",
        f"The highest tau is {best[1].kendall_tau.value:.2f}, of {best[0][0]}, at min_rating {best[0][2]}; "
        f"the track has min_rating {min_rating}.",
        correlation_table(points, _KEYS),
        _draw,
        3.8,
        {"min_rating": min_rating},
    )


def _draw(figure: Figure, plot: Plot) -> None:
    axes = figure.subplots()
    columns = ("min_rating", "kendall_tau", "kendall_tau.low", "kendall_tau.high")
    ratings, tau, low, high = (np.array([row[name] for row in plot.table], float) for name in columns)
    axes.vlines(ratings, low, high, color=BLUE, linewidth=1.2, alpha=0.6)
    axes.plot(ratings, tau, marker="o", color=BLUE, markersize=5, linewidth=1.2)
    at = float(plot.settings["min_rating"] or 0)
    axes.axvspan(at - 0.2, at + 0.2, color=GRID, linewidth=0, zorder=0)
    axes.set_xticks(ratings, [f"{rating:.0f}" for rating in ratings])
    axes.set_xlim(ratings[0] - 0.4, ratings[-1] + 0.4)
    end_at_one(axes, "y")
    axes.set_xlabel("min_rating: a passage counts from this rating on")
    axes.set_ylabel("Kendall's tau")
    grid(axes, "y")
