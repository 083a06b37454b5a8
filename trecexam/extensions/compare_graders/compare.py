"""Several graders on one track, each against the official side, and any two with each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError
from trecexam.extensions.compare_graders.compared import ComparedGrader, GraderLike, compared_graders
from trecexam.extensions.compare_graders.tables import GraderRow, PairRow, grader_table, pair_table
from trecexam.features.agreement.agreement import NothingInCommonError, agreements
from trecexam.features.correlation.comparison import compare
from trecexam.scores.labels import binary_labels, labels
from trecexam.scores.raters import (
    Labels,
    RatedTwice,
    RaterAgreement,
    labels_of_both,
    rater_agreement,
    ratings_of_both,
    together,
)
from trecexam.tables.result import Result
from trecexam.tables.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from trecexam.line.loader import TrackLoader
    from trecexam.line.measure_names import MeasureLike
    from trecexam.scores.kappa import Kappa


@dataclass(frozen=True)
class GraderComparison(Result):
    """Every grader against the official side, a row a grader, measure, official measure and min_rating.

    Attributes:
        rows: by grader, measure, official measure and min_rating.
        notes: what has no grade, and what was compared.
    """

    rows: tuple[GraderRow, ...]
    notes: tuple[str, ...]

    def declare(self) -> dict[str, Table]:
        """One row a grader, measure, official measure and min_rating."""
        return {"graders": grader_table(self.rows)}


@dataclass(frozen=True)
class GraderPairs(Result):
    """How far any two graders agree with each other, a row a pair, what is compared, and min_rating.

    Attributes:
        rows: by pair; over labels, over ratings of all items, then item by item where that was asked for.
        notes: what has no grade, and what cannot be compared.
    """

    rows: tuple[PairRow, ...]
    notes: tuple[str, ...]

    def declare(self) -> dict[str, Table]:
        """One row a pair of graders, what is compared, and min_rating."""
        return {"pairs": pair_table(self.rows)}


def compare_graders(
    loader: TrackLoader,
    graders: Sequence[GraderLike] = (),
    *,
    recorded: Sequence[str | Path] = (),
    measures: Sequence[MeasureLike] | None = None,
    official_measures: Sequence[MeasureLike] | None = None,
    min_ratings: Sequence[int] = (),
    min_relevant: int | None = None,
) -> GraderComparison:
    """Rank correlations and kappa of several graders' leaderboards and labels with the official side.

    Grades are read from the store or from recordings; nothing is graded and nothing is stored. People's
    ratings in place of a grader's are left out.

    Args:
        graders: names of graders of the track, or graders. Empty: those of the track that ask the same of
            the same texts.
        recorded: recordings; of each (model, prompt) in one comes a grader.
        measures, official_measures: as in `Track.correlate`.
        min_ratings: those of them that are on a grader's scale; none for its whole scale.
        min_relevant: from this official label on a passage is relevant, for kappa; None for each min_rating
            where a grader is on the scale of the judgments, else for the track's.

    Raises:
        TrecexamError, ConversionError: a file or a grader cannot be used, nobody graded anything, or there
            is nothing official to compare with.
        ValueError: a measure cannot be computed.
    """
    with compared_graders(loader, graders, recorded) as compared:
        _refuse_off_every_scale(compared, min_ratings)
        rows: list[GraderRow] = []
        remarks: dict[str, None] = {}
        for grader in compared:
            remarks.update(dict.fromkeys(grader.remarks()))
            at = _on_scale(grader, min_ratings)
            if not grader.track.counts.ok or not at:
                continue
            comparison = compare(grader.track, measures, official_measures, min_ratings=at)
            kappas, n_judged = _kappas(grader, at, min_relevant)
            remarks.update(dict.fromkeys(comparison.notes))
            for (name, official, min_rating), correlation in comparison.pairs:
                assert min_rating is None or isinstance(min_rating, int)
                of_labels = None if min_rating is None else kappas.get(min_rating)
                rows.append(
                    GraderRow(
                        grader,
                        name,
                        official,
                        min_rating,
                        correlation,
                        None if of_labels is None else of_labels[0],
                        None if of_labels is None else n_judged,
                        None if of_labels is None else of_labels[1],
                    )
                )
        return GraderComparison(tuple(rows), (*remarks, *_left_out(loader, compared)))


def compare_grader_pairs(
    loader: TrackLoader,
    graders: Sequence[GraderLike] = (),
    *,
    recorded: Sequence[str | Path] = (),
    min_ratings: Sequence[int] = (),
    by_item: bool = False,
) -> GraderPairs:
    """Agreement of every two graders with each other, as between annotators: Cohen's kappa.

    Over the labels of the passages, and over the ratings of all items, that both have. Graded, where both
    scales are equally long; and binary at each min_rating, or, where the scales differ, also at each one's
    own.

    Args:
        graders, recorded, min_ratings: as in `Track.compare_graders`.
        by_item: a row an item instead, without an interval, as its passages are all of one query.

    Raises:
        TrecexamError, ConversionError: as `Track.compare_graders`, or there are less than two graders.
    """
    with compared_graders(loader, graders, recorded) as compared:
        if len(compared) < 2:
            raise TrecexamError(f"only one grader, {compared[0].name}: name another one to compare it with")
        _refuse_off_every_scale(compared, min_ratings)
        rows: list[PairRow] = []
        remarks = [remark for grader in compared for remark in grader.remarks()]
        for first, second in combinations(compared, 2):
            rated = list(_ratings_of_both(first, second))
            if not rated:
                remarks.append(
                    f"{first.name} and {second.name} ask about different items: no ratings in common"
                )
            if by_item:
                for query_id, item_id, of_item in rated:
                    rows += _rows(first, second, "item", of_item, min_ratings, query_id, item_id)
            else:
                rows += _label_rows(first, second, min_ratings)
                if rated:
                    ratings = together([of_item for _, _, of_item in rated])
                    rows += _rows(first, second, "ratings", ratings, min_ratings)
        return GraderPairs(tuple(rows), (*remarks, *_left_out(loader, compared)))


def _kappas(
    grader: ComparedGrader, min_ratings: Sequence[int], min_relevant: int | None
) -> tuple[Mapping[int, tuple[Kappa, int]], int]:
    """By min_rating kappa of labels with judgments, and their min_relevant; how many passages have both."""
    if grader.track.official is None:
        return {}, 0
    try:
        agreed = agreements(grader.track, min_ratings, (), min_relevant)
    except NothingInCommonError:
        return {}, 0
    kappas = {
        each.thresholds.min_rating: (each.binary.kappa, each.thresholds.min_relevant) for each in agreed.found
    }
    return kappas, agreed.n_both


def _on_scale(grader: ComparedGrader, min_ratings: Sequence[int]) -> list[int]:
    """The min_ratings that are meant of a grader."""
    scale = range(1, grader.max_rating + 1)
    return [rating for rating in scale if rating in min_ratings or not min_ratings]


def _refuse_off_every_scale(compared: Sequence[ComparedGrader], min_ratings: Sequence[int]) -> None:
    best = max(grader.max_rating for grader in compared)
    for min_rating in min_ratings:
        if not 1 <= min_rating <= best:
            raise TrecexamError(f"min_rating {min_rating}: the graders rate 0..{best}")


def _ratings_of_both(first: ComparedGrader, second: ComparedGrader) -> Iterator[tuple[str, str, RatedTwice]]:
    """(query_id, item_id, ratings) of each item that both graders ask about."""
    of_first, of_second = ({q.query_id: q for q in grader.track.ratings()} for grader in (first, second))
    items_of = first.track.bank.items
    places: dict[str, list[tuple[int, int]]] = {}
    for query_id, items in second.track.bank.items.items():
        place_of = {item.item_id: place for place, item in enumerate(items_of.get(query_id, ()))}
        common = [(place_of[i.item_id], place) for place, i in enumerate(items) if i.item_id in place_of]
        if common:
            places[query_id] = sorted(common)
    for query_id, place, rated in ratings_of_both(of_first, of_second, places):
        yield query_id, items_of[query_id][place].item_id, rated


def _label_rows(
    first: ComparedGrader, second: ComparedGrader, min_ratings: Sequence[int]
) -> Iterator[PairRow]:
    """The rows over labels, graded and at each min_rating."""
    if first.max_rating == second.max_rating:
        yield _row(first, second, "labels", _rated_labels(first, second, None), None)
    for thresholds in _thresholds(first, second, min_ratings):
        yield _row(first, second, "labels", _rated_labels(first, second, thresholds), thresholds)


def _rated_labels(
    first: ComparedGrader, second: ComparedGrader, min_ratings: tuple[int, int] | None
) -> RatedTwice:
    """The labels of both by the track's rule; or, at a min_rating of each, 1 and 0."""
    at_first, at_second = min_ratings or (None, None)
    return labels_of_both(_labels(first, at_first), _labels(second, at_second))


def _labels(grader: ComparedGrader, min_rating: int | None) -> Labels:
    scores = grader.track.config.scores
    return {
        q.query_id: labels(q, scores.label, scores.min_rating, scores.min_answers)
        if min_rating is None
        else binary_labels(q, min_rating, scores.min_answers)
        for q in grader.track.ratings()
    }


def _rows(
    first: ComparedGrader,
    second: ComparedGrader,
    over: str,
    rated: RatedTwice,
    min_ratings: Sequence[int],
    query_id: str | None = None,
    item_id: str | None = None,
) -> Iterator[PairRow]:
    """The rows over ratings, graded and at each min_rating."""
    if first.max_rating == second.max_rating:
        yield _row(first, second, over, rated, None, query_id, item_id)
    for thresholds in _thresholds(first, second, min_ratings):
        yield _row(first, second, over, rated.reached(*thresholds), thresholds, query_id, item_id)


def _row(
    first: ComparedGrader,
    second: ComparedGrader,
    over: str,
    rated: RatedTwice,
    thresholds: tuple[int, int] | None,
    query_id: str | None = None,
    item_id: str | None = None,
) -> PairRow:
    agreement: RaterAgreement = rater_agreement(rated, graded=thresholds is None)
    return PairRow(first.name, second.name, over, query_id, item_id, thresholds, agreement)


def _thresholds(
    first: ComparedGrader, second: ComparedGrader, min_ratings: Sequence[int]
) -> list[tuple[int, int]]:
    """The min_ratings of both that are compared."""
    both = set(_on_scale(first, min_ratings)) & set(_on_scale(second, min_ratings))
    thresholds = {(rating, rating) for rating in both}
    if first.max_rating != second.max_rating and not min_ratings:
        thresholds.add((first.track.config.scores.min_rating, second.track.config.scores.min_rating))
    return sorted(thresholds)


def _left_out(loader: TrackLoader, compared: Sequence[ComparedGrader]) -> Iterator[str]:
    """Graders of the track that are not compared, and people's ratings, which do not count."""
    names = {each.name for each in compared}
    others = [name for name in loader.folder.whole.graders if name not in names]
    if others and names & loader.folder.whole.graders.keys():
        yield f"not compared, as other things are asked, or nothing can be said: {', '.join(others)}"
    if loader.folder.overrides().exists():
        yield f"left out: people's ratings in place of a grader's ({loader.folder.overrides().name})"
