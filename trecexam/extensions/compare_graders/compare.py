"""Comparison of graders of a track with the official side and with each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from trecexam.extensions.compare_graders.compared import compared_graders
from trecexam.features.agreement.agreement import NothingInCommonError, agreements
from trecexam.features.correlation.comparison import compare
from trecexam.features.correlation.paired_scores import NothingToCompareError
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.open_track import GraderView
from trecexam.inputs.track_graders import Measures
from trecexam.results.result import Tables
from trecexam.results.table import Layout, Table, Value
from trecexam.results.text import CHANGES, Note
from trecexam.scores.kappa import (
    Labels,
    RatedTwice,
    labels_of_both,
    rater_agreement,
    ratings_of_both,
)
from trecexam.scores.labels import binary_labels, labels

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
_PAIRS = Layout(
    ("grader", "other_grader", "over", "min_rating", "other_min_rating"),
    ("kappa", "agreement", "n"),
)
PAIR_COLUMNS = (
    *("grader", "other_grader", "over", "min_rating", "other_min_rating"),
    *("n", "grader_only", "other_only", "agreement", "kappa", "kappa.low", "kappa.high"),
    *("kappa.linear", "kappa.quadratic"),
)


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
    tracks = compared_graders(loader, graders, recorded)
    rows: list[Row] = []
    labels: list[Row] = []
    notes: list[str] = []
    for name, track in tracks.items():
        n_ok, n_cells = track.counts.ok, track.counts.cells
        if n_ok < n_cells:
            line = f"{name}: {n_cells - n_ok:,} of {n_cells:,} cells have no rating; none is graded here"
            notes.append(Note(line, CHANGES))
        if not n_ok:
            continue
        try:
            comparison = compare(track, measures, official_measures, min_ratings=_scale(track))
        except NothingToCompareError as error:
            if len(tracks) == 1:
                raise
            notes.append(str(error))
            continue
        notes += comparison.notes
        kappas = _kappas(track)
        model, prompt = track.grades.model_and_prompt([i for of in track.bank.items.values() for i in of])
        for (measure, official, min_rating), c in comparison.pairs:
            *kappa, n_judged, relevant = kappas.get(min_rating, (None,) * 5)
            if min_rating in kappas:
                labels.append((name, min_rating, *kappa, n_judged, relevant))
            rows.append(
                (
                    *(name, model, prompt, measure, official, min_rating, c.n_runs),
                    *(*c.kendall_tau, *c.spearman_rho, c.tau_ap.value),
                    *(*kappa, n_judged, n_cells, n_cells - n_ok, relevant),
                )
            )
    pairs: list[Row] = []
    for (first, of_first), (second, of_second) in combinations(tracks.items(), 2):
        thresholds = _thresholds(of_first, of_second)
        for each in thresholds:
            both = labels_of_both(_labels(of_first, each and each[0]), _labels(of_second, each and each[1]))
            pairs.append((first, second, "labels", *_agreement(both, each)))
        rated = _ratings(of_first, of_second)
        if rated is None:
            notes.append(f"{first} and {second} grade different items: they have no ratings in common")
            continue
        for each in thresholds:
            both = rated if each is None else rated.reached(*each)
            pairs.append((first, second, "ratings", *_agreement(both, each)))
    notes += _left_out(loader, tracks)
    tables = {"graders": Table(GRADER_COLUMNS, tuple(rows), layout=_LAYOUT)} if rows or not pairs else {}
    if rows:
        tables["labels"] = Table(("grader", "min_rating", *_OF_LABELS), tuple(dict.fromkeys(labels)))
    if pairs:
        tables["pairs"] = Table(PAIR_COLUMNS, tuple(pairs), layout=_PAIRS)
    return Tables(tables, tuple(dict.fromkeys(notes)))


def _scale(track: GradedTrack) -> range:
    """Return the possible values of min_rating."""
    return range(1, track.grader.scale.max_rating + 1)


def _kappas(track: GradedTrack) -> Mapping[object, Row]:
    """Return min_rating -> kappa of labels and judgments, interval, number of passages, min_relevant."""
    if track.official is None:
        return {}
    try:
        agreed = agreements(track, _scale(track))
    except NothingInCommonError:
        return {}
    kappas = ((each.thresholds, each.binary.kappa) for each in agreed.found)
    return {
        at.min_rating: (kappa.value, kappa.low, kappa.high, agreed.n_both, at.min_relevant)
        for at, kappa in kappas
    }


def _ratings(first: GradedTrack, second: GradedTrack) -> RatedTwice | None:
    """Return the ratings of items that both graders grade; None without such items."""
    items_of = first.bank.items
    common: dict[str, list[tuple[int, int]]] = {}
    for query_id, items in second.bank.items.items():
        place_of = {item.item_id: index for index, item in enumerate(items_of.get(query_id, ()))}
        both = [(place_of[i.item_id], index) for index, i in enumerate(items) if i.item_id in place_of]
        if both:
            common[query_id] = both
    a, b = ({q.query_id: q for q in each.ratings()} for each in (first, second))
    return ratings_of_both(a, b, common) if common else None


def _thresholds(first: GradedTrack, second: GradedTrack) -> list[tuple[int, int] | None]:
    """Return the pairs of min_ratings to compare; the first is None if both scales have equal length."""
    best = first.grader.scale.max_rating, second.grader.scale.max_rating
    thresholds = {(rating, rating) for rating in range(1, min(best) + 1)}
    if best[0] == best[1]:
        return [None, *sorted(thresholds)]
    of_first, of_second = (each.config.scores.min_rating for each in (first, second))
    return [*sorted({*thresholds, (of_first, of_second)})]


def _agreement(rated: RatedTwice, thresholds: tuple[int, int] | None) -> Row:
    """Return the columns on two graders' labels or ratings, made binary by thresholds if given."""
    agreement = rater_agreement(rated, graded=thresholds is None)
    return (
        *(thresholds or (None, None)),
        *(agreement.n, agreement.first_only, agreement.second_only, agreement.agreement),
        *(*agreement.kappa, agreement.linear, agreement.quadratic),
    )


def _labels(track: GradedTrack, min_rating: int | None) -> Labels:
    """Return labels by the track's rule or, with a min_rating, 1 and 0."""
    scores = track.config.scores
    return {
        q.query_id: labels(q, scores.label, scores.min_rating, scores.min_answers)
        if min_rating is None
        else binary_labels(q, min_rating, scores.min_answers)
        for q in track.ratings()
    }


def _left_out(loader: GraderView, names: Collection[str]) -> Iterator[str]:
    """Yield notes on graders that are not compared, and on left-out ratings of people."""
    track_graders = loader.folder.whole.graders
    rest = ", ".join(name for name in track_graders if name not in names)
    if rest and track_graders.keys() & names:
        line = f"not compared, because they grade other items or texts, or cannot run: {rest}"
        yield Note(line, CHANGES)
    if loader.folder.overrides().exists():
        yield f"left out: people's ratings that replace a grader's ({loader.folder.overrides().name})"
