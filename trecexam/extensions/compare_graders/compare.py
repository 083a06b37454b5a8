"""Compares graders of a track with the official side and with each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path

from trecexam.extensions.compare_graders.compared import ComparedGrader, compared_graders
from trecexam.features.agreement.agreement import NothingInCommonError, agreements
from trecexam.features.correlation.comparison import compare
from trecexam.features.correlation.paired_scores import NothingToCompareError
from trecexam.grades.open_track import GraderView
from trecexam.inputs.track_graders import Measures
from trecexam.results.notes import CHANGES, Note
from trecexam.results.result import Result
from trecexam.results.table import Layout, Table, Value
from trecexam.scores.kappa import (
    Labels,
    RatedTwice,
    labels_of_both,
    rater_agreement,
    ratings_of_both,
    together,
)
from trecexam.scores.labels import binary_labels, labels

Row = tuple[Value, ...]
GRADER_COLUMNS = (
    *("grader", "model", "prompt", "measure", "official_measure", "min_rating", "n_runs"),
    *("kendall_tau", "kendall_tau.low", "kendall_tau.high"),
    *("spearman_rho", "spearman_rho.low", "spearman_rho.high", "tau_ap"),
    *("kappa", "kappa.low", "kappa.high", "n_judged", "cells", "unrated_cells", "min_relevant"),
)
#: The columns that depend on the grader and min_rating alone: another table on a terminal.
_OF_LABELS = ("kappa", "kappa.low", "kappa.high", "n_judged", "min_relevant")
_LAYOUT = Layout(
    ("grader", "measure", "official_measure", "min_rating"),
    ("kendall_tau", "spearman_rho", "n_runs"),
    without=("model", "prompt", *_OF_LABELS),
)
PAIR_COLUMNS = (
    *("grader", "other_grader", "over", "query_id", "item_id", "min_rating", "other_min_rating"),
    *("n", "grader_only", "other_only", "agreement", "kappa", "kappa.low", "kappa.high"),
    *("kappa.linear", "kappa.quadratic"),
)


@dataclass(frozen=True)
class GraderComparison(Result):
    """Comparison of each grader with the official side, and of each pair of graders.

    Attributes:
        graders: rows of `GRADER_COLUMNS` by grader, measure, official measure and min_rating; none without
            an official side. `min_rating` is None where it has no bearing on the measure. `kappa` is of
            labels that reach min_rating against judgments that reach min_relevant, over the `n_judged`
            passages that have both; None without a min_rating or without judgments.
        pairs: rows of `PAIR_COLUMNS` by pair, over labels, then over ratings of all items.
        items: the same over the ratings of each item.
        notes: what has no grade, and what was compared.
    """

    graders: tuple[Row, ...]
    pairs: tuple[Row, ...]
    items: tuple[Row, ...]
    notes: tuple[str, ...]

    def _declare(self) -> dict[str, Table]:
        """`graders`, with an official side; with several graders `pairs`, and `items`, a row per item."""
        of_official = {"graders": Table(GRADER_COLUMNS, self.graders, layout=_LAYOUT)}
        of_two = {"pairs": Table(PAIR_COLUMNS, self.pairs), "items": Table(PAIR_COLUMNS, self.items)}
        return {**(of_official if self.graders or not self.pairs else {}), **(of_two if self.pairs else {})}

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        """All tables except `items`; kappa of labels, which no measure changes, in a table of its own."""
        shown = [table for name, table in self.tables.items() if name != "items"]
        header = ("grader", "min_rating", *_OF_LABELS)
        indices = [GRADER_COLUMNS.index(name) for name in header]
        of_labels = dict.fromkeys(tuple(row[i] for i in indices) for row in self.graders)
        rows = tuple(row for row in of_labels if row[2] is not None)
        if rows:
            shown.insert(1, Table(header, rows, layout=Layout(header[:2])))
        return tuple(shown)


def compare_graders(
    loader: GraderView,
    graders: Sequence[str] = (),
    *,
    recorded: Sequence[str | Path] = (),
    measures: Measures | None = None,
    official_measures: Measures | None = None,
) -> GraderComparison:
    """Return rank correlations and kappa of graders with the official side, and kappa of any two."""
    compared = compared_graders(loader, graders, recorded)
    rows: list[Row] = []
    notes: list[str] = []
    for grader in compared:
        notes += _without_rating(grader)
        counts = grader.track.counts
        if not counts.ok:
            continue
        scale = range(1, grader.max_rating + 1)
        try:
            comparison = compare(grader.track, measures, official_measures, min_ratings=scale)
        except NothingToCompareError as error:
            if len(compared) == 1:
                raise
            notes.append(str(error))
            continue
        notes += comparison.notes
        kappas = _kappas(grader)
        for (name, official, min_rating), c in comparison.pairs:
            *kappa, n_judged, relevant = kappas.get(min_rating, (None,) * 5)
            rows.append(
                (
                    *(grader.name, grader.model, grader.prompt, name, official, min_rating, c.n_runs),
                    *(*c.kendall_tau, *c.spearman_rho, c.tau_ap.value),
                    *(*kappa, n_judged, counts.cells, counts.cells - counts.ok, relevant),
                )
            )
    pairs: list[Row] = []
    items: list[Row] = []
    for first, second in combinations(compared, 2):
        rated, at = list(_ratings(first, second)), _thresholds(first, second)
        row = partial(_pair_row, first.name, second.name)
        for each in at:
            of_both = labels_of_both(_labels(first, each and each[0]), _labels(second, each and each[1]))
            pairs.append(row("labels", of_both, each))
        if rated:
            of_all = together([of_item for _, _, of_item in rated])
            pairs += (row("ratings", of_all, each) for each in at)
        else:
            notes.append(
                f"{first.name} and {second.name} grade different items: they have no ratings in common"
            )
        for query_id, item_id, of_item in rated:
            items += (row("item", of_item, each, query_id, item_id) for each in at)
    notes += _left_out(loader, compared)
    return GraderComparison(tuple(rows), tuple(pairs), tuple(items), tuple(dict.fromkeys(notes)))


def _without_rating(grader: ComparedGrader) -> Iterator[str]:
    """Yield a note on a grader's cells without a rating, with reasons."""
    counts = grader.track.counts
    without = {
        "not graded yet": counts.missing,
        "of passages without a text": counts.no_text_cells,
        "unparsed": counts.unparsed,
        "refused": counts.refused,
        "errors": counts.error,
    }
    if counts.ok < counts.cells:
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in without.items() if n)
        line = (
            f"{grader.name}: {counts.cells - counts.ok:,} of {counts.cells:,} cells have no rating "
            f"({reasons}); this command does not grade them"
        )
        yield Note(line, CHANGES)


def _kappas(grader: ComparedGrader) -> Mapping[object, Row]:
    """Return min_rating -> kappa of labels with judgments, its interval, passages with both, min_relevant."""
    if grader.track.official is None:
        return {}
    try:
        agreed = agreements(grader.track, range(1, grader.max_rating + 1), ())
    except NothingInCommonError:
        return {}
    kappas = ((each.thresholds, each.binary.kappa) for each in agreed.found)
    return {
        at.min_rating: (kappa.value, kappa.low, kappa.high, agreed.n_both, at.min_relevant)
        for at, kappa in kappas
    }


def _ratings(first: ComparedGrader, second: ComparedGrader) -> Iterator[tuple[str, str, RatedTwice]]:
    """Yield (query_id, item_id, ratings) of each item that both graders grade."""
    of_first, of_second = ({q.query_id: q for q in each.track.ratings()} for each in (first, second))
    items_of = first.track.bank.items
    common: dict[str, list[tuple[int, int]]] = {}
    for query_id, items in second.track.bank.items.items():
        place_of = {item.item_id: place for place, item in enumerate(items_of.get(query_id, ()))}
        both = [(place_of[i.item_id], place) for place, i in enumerate(items) if i.item_id in place_of]
        if both:
            common[query_id] = sorted(both)
    for query_id, place, rated in ratings_of_both(of_first, of_second, common):
        yield query_id, items_of[query_id][place].item_id, rated


def _thresholds(first: ComparedGrader, second: ComparedGrader) -> list[tuple[int, int] | None]:
    """Return the compared pairs of min_ratings; first None if both scales have the same length."""
    best = first.max_rating, second.max_rating
    thresholds = {(rating, rating) for rating in range(1, min(best) + 1)}
    if best[0] == best[1]:
        return [None, *sorted(thresholds)]
    of_first, of_second = (each.track.config.scores.min_rating for each in (first, second))
    return [*sorted({*thresholds, (of_first, of_second)})]


def _pair_row(
    first: str,
    second: str,
    over: str,
    rated: RatedTwice,
    thresholds: tuple[int, int] | None,
    query_id: str | None = None,
    item_id: str | None = None,
) -> Row:
    """Return a row on two graders' labels, or on their ratings: unchanged or, with thresholds, binary."""
    if thresholds is not None and over != "labels":
        rated = rated.reached(*thresholds)
    found = rater_agreement(rated, graded=thresholds is None)
    return (
        *(first, second, over, query_id, item_id, *(thresholds or (None, None))),
        *(found.n, found.first_only, found.second_only, found.agreement),
        *(found.kappa.value, found.kappa.low, found.kappa.high, found.linear, found.quadratic),
    )


def _labels(grader: ComparedGrader, min_rating: int | None) -> Labels:
    """Return labels from the track's rule; or, with a min_rating, 1 and 0."""
    scores = grader.track.config.scores
    return {
        q.query_id: labels(q, scores.label, scores.min_rating, scores.min_answers)
        if min_rating is None
        else binary_labels(q, min_rating, scores.min_answers)
        for q in grader.track.ratings()
    }


def _left_out(loader: GraderView, compared: Sequence[ComparedGrader]) -> Iterator[str]:
    """Yield notes on graders that are not compared, and on people's ratings, which are left out."""
    names, own = {each.name for each in compared}, loader.folder.whole.graders
    rest = ", ".join(name for name in own if name not in names)
    if rest and names & own.keys():
        line = f"not compared, because they grade other items or texts, or cannot run: {rest}"
        yield Note(line, CHANGES)
    if loader.folder.overrides().exists():
        yield f"left out: people's ratings that replace a grader's ({loader.folder.overrides().name})"
