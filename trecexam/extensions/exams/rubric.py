"""A track's bank as an exam of its runs: fit, abilities, and correlation with the official side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from trecexam.errors import TrecexamError
from trecexam.extensions.exams.fitting import fitted
from trecexam.extensions.exams.irt import fitting
from trecexam.extensions.exams.irt.settings import CERTAIN_DIGITS, Settings
from trecexam.extensions.exams.responses import from_track, item_names
from trecexam.extensions.exams.results import ExamFit
from trecexam.features.correlation.paired_scores import NothingToCompareError, common_queries, paired_scores
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.official import official_judgments
from trecexam.inputs.official import never_judged, never_judged_note
from trecexam.scores.correlation import Correlation, correlate
from trecexam.scores.rank_correlation import QueryDraws

#: Minimum number of runs; with fewer, discriminations only reflect the prior.
LEAST_RUNS = 5


def has_examinees(track: GradedTrack) -> bool:
    """Return True if there are at least two runs as examinees."""
    return len(track.runs) > 1


def default_settings() -> Settings:
    """Return settings for a rubric bank: 2PL (no guessing), with priors for few runs."""
    return Settings.of("2pl", priors=True)


def fit_track(
    track: GradedTrack,
    settings: Settings | None = None,
    *,
    components: Path | None = None,
    groups: Path | None = None,
) -> ExamFit:
    """Fit an item response model: abilities of runs, difficulty and discrimination of items."""
    exam_fit = fitted(from_track(track, components, groups), settings or default_settings())
    exam_fit = ExamFit.of(exam_fit.exam, exam_fit.fit, tuple(_against_official(track, exam_fit)))
    return replace(exam_fit, notes=(*exam_fit.notes, *_never_judged(track, exam_fit)))


def discriminations(track: GradedTrack, min_rating: int | None = None) -> Mapping[tuple[str, str], float]:
    """Return (query_id, item_id) -> discrimination of items that tell runs apart; {} with too few runs.

    Items that all or none of the runs cover have none.
    """
    if len(track.runs) < LEAST_RUNS:
        return {}
    try:
        exam = from_track(track, min_rating=min_rating)
    except TrecexamError:
        # All runs alike, or a single item: discriminations are unknown, and the column is empty.
        return {}
    a = fitting.fit(exam.values, default_settings()).a
    of_items = np.where(fitting.constant(exam.values), math.nan, a).tolist()
    by_item = {
        name: round(a, CERTAIN_DIGITS)
        for name, a in zip(exam.items, of_items, strict=True)
        if not math.isnan(a)
    }
    names = item_names(track.bank)
    return {key: by_item[name] for key, name in names.items() if name in by_item}


def _never_judged(track: GradedTrack, exam_fit: ExamFit) -> Iterator[str]:
    """Yield a note on runs without judged passages, if abilities are compared with official judgments."""
    queries = common_queries(track)
    if track.official is None or not queries or not exam_fit.official:
        return
    runs = {name: track.runs[name] for name in exam_fit.exam.examinees}
    without = never_judged(runs, official_judgments(track).judged, queries)
    if without:
        yield never_judged_note(without, len(runs))


def _against_official(track: GradedTrack, exam_fit: ExamFit) -> Iterator[tuple[str, str, Correlation]]:
    """Yield correlations of abilities and accuracies with each official measure."""
    try:
        sides = {pair.official_measure: pair for pair in paired_scores(track)}
    except NothingToCompareError:
        return
    row_of = {run: position for position, run in enumerate(exam_fit.exam.examinees)}
    for theirs, pair in sides.items():
        rows = [row for row, run in enumerate(pair.runs) if run in row_of]
        if len(rows) < 2:
            continue
        official = pair.official.reshape(len(pair.runs), -1).mean(axis=1)[rows]
        at = [row_of[pair.runs[row]] for row in rows]
        fit = exam_fit.fit
        for name, mine in (("theta", fit.theta.round(CERTAIN_DIGITS)), ("accuracy", fit.accuracy)):
            values = mine[at][:, None]
            yield name, theirs, correlate(values, official, draws=QueryDraws(0), ranks=pair.of_ranks)
