"""Compares graders of a track with the official side and with each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from trecexam.extensions.compare_graders.compared import ComparedGrader, GraderLike, compared_graders
from trecexam.features.agreement.agreement import NothingInCommonError, agreements
from trecexam.features.correlation.comparison import compare
from trecexam.features.correlation.paired_scores import NothingToCompareError
from trecexam.line.loader import TrackLoader
from trecexam.line.measure_names import Measures
from trecexam.scores.kappa import Kappa
from trecexam.scores.labels import binary_labels, labels
from trecexam.scores.raters import (
    Labels,
    RatedTwice,
    labels_of_both,
    rater_agreement,
    ratings_of_both,
    together,
)
from trecexam.tables.notes import CHANGES, Note
from trecexam.tables.result import Result
from trecexam.tables.table import Layout, Table, Value

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

    def _for_people(self) -> tuple[Table, ...]:
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
    loader: TrackLoader,
    graders: Sequence[GraderLike] = (),
    *,
    recorded: Sequence[str | Path] = (),
    measures: Measures | None = None,
    official_measures: Measures | None = None,
) -> GraderComparison:
    """Rank correlations and kappa of several graders with the official side, and kappa of any two."""
    compared = compared_graders(loader, graders, recorded)
    rows: list[Row] = []
    remarks: dict[str, None] = {}
    for grader in compared:
        remarks.update(dict.fromkeys(grader.remarks()))
        if not grader.track.counts.ok:
            continue
        scale = range(1, grader.max_rating + 1)
        try:
            comparison = compare(grader.track, measures, official_measures, min_ratings=scale)
        except NothingToCompareError as error:
            if len(compared) == 1:
                raise
            remarks[str(error)] = None
            continue
        kappas, n_judged = _kappas(grader)
        remarks.update(dict.fromkeys(comparison.notes))
        counts = grader.track.counts
        for (name, official, min_rating), c in comparison.pairs:
            assert min_rating is None or isinstance(min_rating, int)
            of_labels = None if min_rating is None else kappas.get(min_rating)
            kappa, relevant = of_labels or (None, None)
            rows.append(
                (
                    *(grader.name, grader.model, grader.prompt, name, official, min_rating, c.n_runs),
                    *(*c.kendall_tau, *c.spearman_rho, c.tau_ap.value),
                    *((None, None, None) if kappa is None else (kappa.value, kappa.low, kappa.high)),
                    None if of_labels is None else n_judged,
                    *(counts.cells, counts.cells - counts.ok, relevant),
                )
            )
    pairs: list[Row] = []
    items: list[Row] = []
    for first, second in combinations(compared, 2):
        pair = _Pair(first, second)
        rated = list(pair.ratings())
        pairs += pair.over_labels()
        if rated:
            pairs += pair.over_ratings("ratings", together([of_item for _, _, of_item in rated]))
        else:
            line = f"{first.name} and {second.name} grade different items: they have no ratings in common"
            remarks[line] = None
        for query_id, item_id, of_item in rated:
            items += pair.over_ratings("item", of_item, query_id, item_id)
    notes = (*remarks, *_left_out(loader, compared))
    return GraderComparison(tuple(rows), tuple(pairs), tuple(items), notes)


def _kappas(grader: ComparedGrader) -> tuple[Mapping[int, tuple[Kappa, int]], int]:
    """Kappa of labels with judgments per min_rating, with min_relevant and the number of common passages."""
    if grader.track.official is None:
        return {}, 0
    try:
        agreed = agreements(grader.track, range(1, grader.max_rating + 1), ())
    except NothingInCommonError:
        return {}, 0
    kappas = {
        each.thresholds.min_rating: (each.binary.kappa, each.thresholds.min_relevant) for each in agreed.found
    }
    return kappas, agreed.n_both


@dataclass(frozen=True)
class _Pair:
    """Two graders and their ratings."""

    first: ComparedGrader
    second: ComparedGrader

    def ratings(self) -> Iterator[tuple[str, str, RatedTwice]]:
        """(query_id, item_id, ratings) of each item that both graders grade."""
        of_first, of_second = (
            {q.query_id: q for q in grader.track.ratings()} for grader in (self.first, self.second)
        )
        items_of = self.first.track.bank.items
        item_indices: dict[str, list[tuple[int, int]]] = {}
        for query_id, items in self.second.track.bank.items.items():
            place_of = {
                item.item_id: item_index for item_index, item in enumerate(items_of.get(query_id, ()))
            }
            common = [
                (place_of[i.item_id], item_index)
                for item_index, i in enumerate(items)
                if i.item_id in place_of
            ]
            if common:
                item_indices[query_id] = sorted(common)
        for query_id, item_index, rated in ratings_of_both(of_first, of_second, item_indices):
            yield query_id, items_of[query_id][item_index].item_id, rated

    def over_labels(self) -> Iterator[Row]:
        """Rows on labels from the track's rule and at each min_rating."""
        for thresholds in self._thresholds():
            at = thresholds or (None, None)
            rated = labels_of_both(_labels(self.first, at[0]), _labels(self.second, at[1]))
            yield self._row("labels", rated, thresholds)

    def over_ratings(
        self, over: str, rated: RatedTwice, query_id: str | None = None, item_id: str | None = None
    ) -> Iterator[Row]:
        """Rows on ratings, unchanged and at each min_rating."""
        for thresholds in self._thresholds():
            reached = rated if thresholds is None else rated.reached(*thresholds)
            yield self._row(over, reached, thresholds, query_id, item_id)

    def _thresholds(self) -> list[tuple[int, int] | None]:
        """The compared pairs of min_ratings; first None if both scales have the same length."""
        best = self.first.max_rating, self.second.max_rating
        thresholds = {(rating, rating) for rating in range(1, min(best) + 1)}
        if best[0] == best[1]:
            return [None, *sorted(thresholds)]
        min_ratings = (grader.track.config.scores.min_rating for grader in (self.first, self.second))
        return [*sorted({*thresholds, (next(min_ratings), next(min_ratings))})]

    def _row(
        self,
        over: str,
        rated: RatedTwice,
        thresholds: tuple[int, int] | None,
        query_id: str | None = None,
        item_id: str | None = None,
    ) -> Row:
        agreement = rater_agreement(rated, graded=thresholds is None)
        return (
            *(self.first.name, self.second.name, over, query_id, item_id, *(thresholds or (None, None))),
            *(agreement.n, agreement.first_only, agreement.second_only, agreement.agreement),
            *(
                agreement.kappa.value,
                agreement.kappa.low,
                agreement.kappa.high,
                agreement.linear,
                agreement.quadratic,
            ),
        )


def _labels(grader: ComparedGrader, min_rating: int | None) -> Labels:
    """Labels from the track's rule; or, with a min_rating, 1 and 0."""
    scores = grader.track.config.scores
    return {
        q.query_id: labels(q, scores.label, scores.min_rating, scores.min_answers)
        if min_rating is None
        else binary_labels(q, min_rating, scores.min_answers)
        for q in grader.track.ratings()
    }


def _left_out(loader: TrackLoader, compared: Sequence[ComparedGrader]) -> Iterator[str]:
    """Notes on graders that are not compared, and on people's ratings, which are left out."""
    names = {each.name for each in compared}
    not_compared = [name for name in loader.folder.whole.graders if name not in names]
    if not_compared and names & loader.folder.whole.graders.keys():
        names_of_rest = ", ".join(not_compared)
        line = f"not compared, because they grade other items or texts, or cannot run: {names_of_rest}"
        yield Note(line, CHANGES)
    if loader.folder.overrides().exists():
        yield f"left out: people's ratings that replace a grader's ({loader.folder.overrides().name})"
