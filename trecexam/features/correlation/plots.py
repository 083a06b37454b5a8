"""The plots that set the automatic leaderboard against the official one."""

from __future__ import annotations

from collections.abc import Sequence

from trecexam.errors import TrecexamError
from trecexam.features.correlation.comparison import LeaderboardComparison, compare
from trecexam.features.correlation.paired_scores import PairedScores, paired_scores
from trecexam.features.correlation.scatter_plot import scatter_plot
from trecexam.features.correlation.thresholds_plot import ThresholdPoint, thresholds_plot
from trecexam.line.assessment import Assessment
from trecexam.line.evaluation import rubric_values
from trecexam.scores import measures as of_measures
from trecexam.scores.correlation import correlate
from trecexam.scores.measures import COVER, at_min_rating
from trecexam.scores.rank_correlation.resampling import QueryDraws
from trecexam.tables.plots.model import Plot

#: The second measure has its own thresholds only where runs x queries are no more than these.
_SMALL = 10_000
#: In place of the rating that a measure's name leaves open.
_OPEN = 999


def scatter(track: Assessment, compared: LeaderboardComparison) -> Plot:
    """Return the plot "scatter" of the first measures of a comparison."""
    return _scatter(paired_scores(track, first=True)[0], compared)


def scatter_of(track: Assessment, measure: str | None = None, official_measure: str | None = None) -> Plot:
    """Return the plot "scatter" by these measures.

    Raises:
        TrecexamError: there is nothing to compare.
        ValueError: a measure cannot be computed.
    """
    rubric, official = (None if name is None else [name] for name in (measure, official_measure))
    scores = paired_scores(track, rubric, official, first=True)[0]
    return _scatter(scores, compare(track, [scores.measure], [scores.official_measure]))


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


def _scatter(scores: PairedScores, compared: LeaderboardComparison) -> Plot:
    correlations = {key[:2]: correlation for key, correlation in compared.pairs}
    return scatter_plot(scores, correlations.get((scores.measure, scores.official_measure)))


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
    """The first of the measures on labels and the first on items on which min_rating has a bearing.

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
