"""The plots that set the automatic leaderboard against the official one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trecexam.features.correlation.paired_scores import paired_scores
from trecexam.features.correlation.scatter_plot import scatter_plot
from trecexam.features.correlation.thresholds_plot import ThresholdPoint, thresholds_plot
from trecexam.scores.correlation import Correlation, correlate
from trecexam.scores.measures import COVER, at_min_rating, measure
from trecexam.scores.rank_correlation.resampling import QueryDraws
from trecexam.tables.plots.model import Plot

if TYPE_CHECKING:
    from trecexam.features.correlation.comparison import LeaderboardComparison, Outliers
    from trecexam.line.loaded import LoadedTrack

#: The second measure has thresholds of its own only where runs x queries are no more than these.
_SMALL = 10_000
#: Stands for the rating that a measure's name leaves open.
_OPEN = 999


def official_plots(
    track: LoadedTrack, compared: LeaderboardComparison, outliers: Outliers
) -> dict[str, Plot]:
    """The plots "scatter", and "thresholds" where min_rating has a bearing on one of the track's measures.

    Args:
        compared, outliers: as in out/; the correlations that are known are not computed again.
    """
    known = {(str(key[0]), str(key[1])): correlation for key, correlation in compared.pairs}
    scores = paired_scores(track, first=True)[0]
    plots = {
        "scatter": scatter_plot(
            scores.measure,
            scores.official_measure,
            scores.rubric,
            scores.official,
            outliers.found[0][1],
            known.get((scores.measure, scores.official_measure)),
        )
    }
    points = _points(track, scores.official_measure, known)
    if points:
        plots["thresholds"] = thresholds_plot(points, track.config.scores.min_rating)
    return plots


def _points(
    track: LoadedTrack, official: str, known: dict[tuple[str, str], Correlation]
) -> list[ThresholdPoint]:
    """The first measures on which min_rating has a bearing, at each rating of the grader's scale."""
    scores = track.config.scores
    own = scores.min_rating
    lines = _lines(track)
    if len(track.runs) * len(track.bank.query_ids) > _SMALL:
        lines = lines[:1]
    points: list[ThresholdPoint] = []
    draws = QueryDraws()
    for name, line in lines:
        ratings = list(range(1, track.traits.scale.max_rating + 1))
        here = str(at_min_rating(measure(name), own, counts=scores.label == "count"))
        if (here, official) in known:
            # The measure as the track has it: nothing of it is to be computed again.
            ratings.remove(own)
            points.append(((line, here, official, own), known[here, official]))
        for paired in paired_scores(track, [name], None, ratings, first=True) if ratings else ():
            if paired.min_rating is not None:
                key = line, paired.measure, paired.official_measure, paired.min_rating
                points.append((key, correlate(paired.rubric, paired.official, draws=draws)))
    order = [line for _, line in lines]
    return sorted(points, key=lambda point: (order.index(point[0][0]), point[0][3]))


def _lines(track: LoadedTrack) -> list[tuple[str, str]]:
    """The first measure on labels and the first on items on which min_rating has a bearing, in their order.

    Returns:
        (the measure, what it is called where its rating is left open).
    """
    counts = track.config.scores.label == "count"
    lines: dict[bool, tuple[str, str]] = {}
    for name in track.config.measures():
        rubric_measure = measure(name)
        opened = at_min_rating(rubric_measure, _OPEN, counts=counts)
        if opened is not None:
            lines.setdefault(
                rubric_measure.NAME in COVER, (name, str(opened).replace(f"rel={_OPEN}", "rel=t"))
            )
    return list(lines.values())
