"""How far the leaderboard by learned labels agrees with the official side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from trecexam.extensions.learn.learned_board import LearnedBoard, learned_leaderboard
from trecexam.features.correlation.comparison import LeaderboardComparison
from trecexam.features.correlation.paired_scores import (
    PairedScores,
    comparison_notes,
    paired_scores,
    without_interval,
)
from trecexam.line.loaded_track import of_documents
from trecexam.line.measure_names import names_of
from trecexam.scores.correlation import N_COEFFICIENTS, coefficients, correlate
from trecexam.scores.rank_correlation.ranks import Floats, official_means
from trecexam.scores.rank_correlation.rbo import DEFAULT_P
from trecexam.scores.rank_correlation.resampling import QueryDraws
from trecexam.scores.values import MeasureValues

if TYPE_CHECKING:
    from trecexam.extensions.learn.encoding import Encoded, Encoder
    from trecexam.line.assessment import Assessment
    from trecexam.line.measure_names import MeasureLike

PREFIX = "learned "


@of_documents
def compare_learned(
    track: Assessment,
    official_measures: Sequence[MeasureLike] | None = None,
    *,
    rbo_p: float | None = None,
    source: Path | str | None = None,
    encoder: str | Encoder | None = None,
    grades: bool = True,
    progress: Encoded | None = None,
) -> LeaderboardComparison:
    """Correlations of expected nDCG and AP, by learned labels, with official measures.

    The judgments that are there are learned from, and count as they are on both sides: this says what the
    missing ones may change. An official leaderboard knows nothing of that.

    Intervals hold what is uncertain in the queries, as those of `Track.correlate`, and in the labels: the
    variance of a coefficient over draws of labels, and over fits without some queries, is added to that over
    queries. There are none where `track.learn.leaderboard` has none.

    Args:
        official_measures, rbo_p: as of `Track.correlate`.
        source, encoder, grades, progress: as of `track.learn.labels`.

    Raises:
        TrecexamError, ValueError: as `track.learn.leaderboard` and `Track.correlate`.
    """
    p = DEFAULT_P if rbo_p is None else rbo_p
    board = learned_leaderboard(track, source=source, encoder=encoder, grades=grades, progress=progress)
    values = MeasureValues(
        board.runs,
        board.query_ids,
        tuple(f"{PREFIX}{measure}" for measure in board.measures),
        np.moveaxis(board.scores.values, 0, -1),
    )
    comparisons = paired_scores(track, None, names_of(official_measures), values=values)
    draws = QueryDraws() if board.enough else QueryDraws(0, 0)
    pairs = [
        (
            (scores.measure, scores.official_measure),
            correlate(
                scores.rubric,
                scores.official,
                rbo_p=p,
                draws=draws,
                label_error=_label_error(board, values.measures.index(scores.measure), scores, p),
            ),
        )
        for scores in comparisons
    ]
    compared = comparison_notes(track, comparisons, (), official_measures)
    # The board's first note is on its own intervals: it says why there are none here.
    of_board = board.notes[1:] if board.enough else board.notes
    lines = tuple(dict.fromkeys((*compared, *of_board, *without_interval(comparisons))))
    return LeaderboardComparison(
        len(comparisons[0].query_ids), ("measure", "official_measure"), tuple(pairs), p, lines
    )


def _label_error(board: LearnedBoard, measure: int, scores: PairedScores, p: float) -> Floats:
    """Standard errors of the coefficients by labels, of the leaderboard over all of its queries."""
    runs = [board.runs.index(run) for run in scores.runs]
    official = official_means(scores.official)[:, None]

    def over(means: Floats) -> Floats:
        """Of each column of means the coefficients, where tau is defined; shape (coefficients, columns)."""
        if not means.size:
            return np.empty((N_COEFFICIENTS, 0))
        of_columns = coefficients(means[:, measure][:, runs].T, official, p)
        return np.asarray(of_columns[:, ~np.isnan(of_columns[0])])

    drawn, refitted = over(board.scores.drawn), over(board.scores.refitted)
    groups = refitted.shape[1]
    variance = drawn.var(axis=1) if drawn.size else np.zeros(N_COEFFICIENTS)
    if groups:
        variance = variance + (groups - 1) * refitted.var(axis=1)
    return np.asarray(np.sqrt(variance))
