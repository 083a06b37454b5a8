"""Comparison of graders of a track with the official side and with each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from trecexam.errors import TrecexamError
from trecexam.extensions.compare_graders.compared import compared_graders
from trecexam.features.agreement.agreement import NothingInCommonError, agreements
from trecexam.features.correlation.comparison import compare
from trecexam.features.correlation.paired_scores import NothingToCompareError
from trecexam.grades.graded_track import GradedTrack, graded_by
from trecexam.grades.open_track import GraderView
from trecexam.inputs.track_graders import Measures
from trecexam.results.result import Tables
from trecexam.results.table import Layout, Table, Value
from trecexam.results.text import CHANGES, Note
from trecexam.scores.kappa import Labels, RatedTwice, labels_of_both, rater_agreement, ratings_of_both
from trecexam.scores.labels import LabelRule, labels

Row = tuple[Value, ...]
GRADER_COLUMNS = (
    *("grader", "model", "prompt", "measure", "official_measure", "min_rating", "n_runs"),
    *("kendall_tau", "kendall_tau.low", "kendall_tau.high"),
    *("spearman_rho", "spearman_rho.low", "spearman_rho.high", "tau_ap"),
    *("kappa", "kappa.low", "kappa.high", "n_judged", "cells", "unrated_cells", "min_relevant"),
)
#: Kappa of labels with judgments, which no measure changes.
_OF_LABELS = ("kappa", "kappa.low", "kappa.high", "n_judged", "min_relevant")
_LAYOUT = Layout(
    ("grader", "measure", "official_measure", "min_rating"),
    ("kendall_tau", "spearman_rho", "n_runs"),
    without=("model", "prompt", *_OF_LABELS),
)
PAIR_COLUMNS = (
    *("grader", "other_grader", "over", "min_rating", "other_min_rating"),
    *("n", "grader_only", "other_only", "agreement", "kappa", "kappa.low", "kappa.high"),
    *("kappa.linear", "kappa.quadratic"),
)
_PAIRS = Layout(PAIR_COLUMNS[:5], ("kappa", "agreement", "n"))


def compare_graders(
    loader: GraderView,
    graders: Sequence[str] = (),
    *,
    recorded: Sequence[str | Path] = (),
    measures: Measures | None = None,
    official_measures: Measures | None = None,
) -> Tables:
    """Compare graders with the official side by rank correlations and kappa, and any two by kappa.

    Returns:
        The table "graders", if there is an official side: rows by grader, measure, official measure and
            min_rating, which is empty for measures without it. `kappa` compares labels that reach min_rating
            with judgments that reach min_relevant, over `n_judged` passages.
        The table "pairs", if there are several graders: rows for labels, then for ratings.
    """
    compared = compared_graders(loader, graders, recorded)
    tracks = {name: track for name, track in compared.items() if track.counts.ok}
    if not tracks:
        reason = f"no grades of {' and '.join(compared)} yet"
        remedy = "run `trecexam watch`, or give recorded grades with `--recorded FILE`"
        raise TrecexamError(f"{reason}: {remedy}", path=loader.folder.root)
    rows: list[Row] = []
    notes: list[str] = []
    for name, track in compared.items():
        n_cells, n_unrated = track.counts.cells, track.counts.cells - track.counts.ok
        if n_unrated:
            line = f"{name}: {n_unrated:,} of {n_cells:,} cells have no rating; none is graded here"
            notes.append(Note(line, CHANGES))
        if name not in tracks:
            continue
        scale = range(1, track.grader.scale.max_rating + 1)
        try:
            comparison = compare(track, measures, official_measures, min_ratings=scale)
        except NothingToCompareError as error:
            if len(tracks) == 1:
                raise
            notes.append(str(error))
            continue
        notes += comparison.notes
        kappas, (_, *model_and_prompt) = _kappas(track, scale), graded_by(track)
        for (measure, official, min_rating), c in comparison.pairs:
            *kappa, relevant = kappas.get(min_rating, (None,) * 5)
            key = name, *model_and_prompt, measure, official, min_rating, c.n_runs
            coefficients = *c.kendall_tau, *c.spearman_rho, c.tau_ap.value
            rows.append((*key, *coefficients, *kappa, n_cells, n_unrated, relevant))
    pairs: list[Row] = []
    for names in combinations(tracks, 2):
        both = [tracks[name] for name in names]
        by_rule = labels_of_both(*(_labels(track, track.config.scores.label) for track in both))
        over = {"labels": (by_rule, labels_of_both(*(_labels(track, "max") for track in both)))}
        if (rated := _ratings(*both)) is not None:
            over["ratings"] = rated, rated
        else:
            notes.append(f"{' and '.join(names)} grade different items: they have no ratings in common")
        for what, (graded, binary) in over.items():
            pairs += ((*names, what, *row) for row in _agreements(both, graded, binary))
    notes += _left_out(loader, compared)
    table = Table(GRADER_COLUMNS, tuple(rows), layout=_LAYOUT)
    tables = {"graders": table} if rows or not pairs else {}
    if rows:
        header = ("grader", "min_rating", *_OF_LABELS)
        columns = zip(*(table[name] for name in header), strict=True)
        tables["labels"] = Table(header, tuple(row for row in dict.fromkeys(columns) if row[-1] is not None))
    if pairs:
        tables["pairs"] = Table(PAIR_COLUMNS, tuple(pairs), layout=_PAIRS)
    return Tables(tables, tuple(dict.fromkeys(notes)))


def _kappas(track: GradedTrack, min_ratings: Sequence[int]) -> Mapping[object, Row]:
    """Return min_rating -> kappa of labels and judgments, interval, number of passages, min_relevant."""
    if track.official is None:
        return {}
    try:
        agreed = agreements(track, min_ratings)
    except NothingInCommonError:
        return {}
    return {
        found.thresholds.min_rating: (*found.binary.kappa, agreed.n_both, found.thresholds.min_relevant)
        for found in agreed.found
    }


def _ratings(first: GradedTrack, second: GradedTrack) -> RatedTwice | None:
    """Return the ratings of items that both graders grade; None without such items."""
    common: dict[str, list[tuple[int, int]]] = {}
    for query_id, sheet in second.sheets.items():
        columns = first.sheets[query_id].column_of if query_id in first.sheets else {}
        both = [(columns[item], column) for item, column in sheet.column_of.items() if item in columns]
        if both:
            common[query_id] = both
    a, b = ({q.query_id: q for q in track.ratings()} for track in (first, second))
    return ratings_of_both(a, b, common) if common else None


def _agreements(tracks: Sequence[GradedTrack], graded: RatedTwice, binary: RatedTwice) -> Iterator[Row]:
    """Yield the columns on two graders' labels or ratings: `graded`, if both scales have equal length.

    Then `binary` at each min_rating and, for scales of different length, at those of the graders' settings.
    """
    scales = {track.grader.scale.max_rating for track in tracks}
    thresholds = {(rating, rating) for rating in range(1, min(scales) + 1)}
    if len(scales) > 1:
        thresholds.add((tracks[0].config.scores.min_rating, tracks[1].config.scores.min_rating))
    as_rated = [((None, None), graded)] if len(scales) == 1 else []
    for at, rated in (*as_rated, *((at, binary.reached(*at)) for at in sorted(thresholds))):
        agreement = rater_agreement(rated, graded=rated is graded)
        counts = agreement.n, agreement.first_only, agreement.second_only, agreement.agreement
        yield (*at, *counts, *agreement.kappa, agreement.linear, agreement.quadratic)


def _labels(track: GradedTrack, rule: LabelRule) -> Labels:
    """Return the labels by a rule, query_id -> doc_id -> label."""
    scores = track.config.scores
    return {q.query_id: labels(q, rule, scores.min_rating, scores.min_answers) for q in track.ratings()}


def _left_out(loader: GraderView, names: Collection[str]) -> Iterator[str]:
    """Yield notes on graders that are not compared, and on left-out ratings of people."""
    track_graders = loader.folder.whole.graders
    rest = ", ".join(name for name in track_graders if name not in names)
    if rest and track_graders.keys() & names:
        line = f"not compared, because they grade other items or texts, or cannot run: {rest}"
        yield Note(line, CHANGES)
    if loader.folder.overrides().exists():
        yield f"left out: people's ratings that replace a grader's ({loader.folder.overrides().name})"
