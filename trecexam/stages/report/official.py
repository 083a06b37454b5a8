"""The plots that set the automatic leaderboard against the official one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trecexam.graders.base import scale_of
from trecexam.reports.plots.model import Plot
from trecexam.reports.plots.scatter import scatter_plot
from trecexam.reports.plots.thresholds import Point, thresholds_plot
from trecexam.stages.organizing.sides import sides

if TYPE_CHECKING:
    from trecexam.pipeline import Pipeline
    from trecexam.scores.correlation import Correlation
    from trecexam.stages.organizing.comparison import Comparison, Outliers

#: The second measure has thresholds of its own only where runs x queries are no more than these.
_SMALL = 10_000
#: Stands for the rating that a measure's name leaves open.
_OPEN = 999


def official_plots(pipeline: Pipeline, compared: Comparison, outliers: Outliers) -> dict[str, Plot]:
    """ "scatter", and "thresholds" where min_rating has a bearing on one of the track's measures.

    Args:
        compared, outliers: as in out/; the correlations that are known are not computed again.
    """
    known = {(str(key[0]), str(key[1])): found for key, found in compared.pairs}
    one = sides(pipeline, first=True)[0]
    plots = {
        "scatter": scatter_plot(
            one.measure,
            one.official_measure,
            one.rubric,
            one.official,
            outliers.found[0][1],
            known.get((one.measure, one.official_measure)),
        )
    }
    points = _points(pipeline, known)
    if points:
        plots["thresholds"] = thresholds_plot(points, pipeline.config.scores.min_rating)
    return plots


def _points(pipeline: Pipeline, known: dict[tuple[str, str], Correlation]) -> list[Point]:
    """The first measures on which min_rating has a bearing, at each rating of the grader's scale."""
    from trecexam.scores.correlation import correlate

    snapshot, scores = pipeline.snapshot, pipeline.config.scores
    assert snapshot is not None
    ratings = list(range(1, scale_of(pipeline.grader).max_rating + 1))
    lines = _lines(pipeline)
    if len(snapshot.runs) * len(snapshot.bank.query_ids) > _SMALL:
        lines = lines[:1]
    points: list[Point] = []
    for name, line in lines:
        for one in sides(pipeline, [name], None, ratings, first=True):
            if one.min_rating is None:
                continue
            pair = one.measure, one.official_measure
            found = known.get(pair) if one.min_rating == scores.min_rating else None
            points.append(((line, *pair, one.min_rating), found or correlate(one.rubric, one.official)))
    return points


def _lines(pipeline: Pipeline) -> list[tuple[str, str]]:
    """The first measure on labels and the first on items on which min_rating has a bearing, in their order.

    Returns:
        (the measure, what it is called where its rating is left open).
    """
    from trecexam.scores.measures import COVER, at_min_rating, measure

    counts = pipeline.config.scores.label == "count"
    found: dict[bool, tuple[str, str]] = {}
    for name in pipeline.config.measures():
        one = measure(name)
        opened = at_min_rating(one, _OPEN, counts=counts)
        if opened is not None:
            found.setdefault(one.NAME in COVER, (name, str(opened).replace(f"rel={_OPEN}", "rel=t")))
    return list(found.values())
