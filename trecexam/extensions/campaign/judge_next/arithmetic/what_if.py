"""The effect of a judgment on the ranking of the runs, computed for each possible rating.

Only the judged query's values change, so only they are computed again: each rating is its own query
with the other judgments as they are, and all of them are evaluated at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from ir_measures import Measure
from numpy.typing import NDArray

from converters.records import Qrel
from trecexam.extensions.campaign.judge_next.arithmetic.chances import RATINGS, Chances
from trecexam.scores.evaluate import Judgments, OfficialJudgments, RubricJudgments
from trecexam.scores.labels import LabelRule, labels
from trecexam.scores.measures import COVER, DIVERSITY
from trecexam.scores.ratings import MISSING, QueryRatings
from trecexam.scores.values import TIE_DECIMALS
from trecexam.scores.weights import EQUAL, item_weights, whole_weight

#: Chunk sizes of (judgment, rank) and (judgment, pair of runs) cells: about 50 MB.
_ROWS = 200_000
_CELLS = 1 << 20

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Scoring:
    """The score that orders runs: a measure, and the rule for labels (`trecexam.scores.labels.labels`)."""

    measure: Measure
    rule: LabelRule = "max"
    min_rating: int = 4
    min_answers: int = 1

    @property
    def on_items(self) -> bool:
        """Whether the measure uses ratings of items instead of labels of passages."""
        return self.measure.NAME in COVER | DIVERSITY

    @property
    def thresholds(self) -> tuple[int, ...]:
        """Ascending ratings from which a passage reaches an item (in part); for measures on items."""
        # With rel=1 diversity measures are computed on 0/1 rows made with min_rating.
        if self.measure.NAME in DIVERSITY and self.measure["rel"] == 1:
            return (self.min_rating,)
        partial = self.measure["partial"] if self.measure.NAME in COVER else None
        return (int(self.measure["rel"]),) if partial is None else (int(partial), int(self.measure["rel"]))


@dataclass(frozen=True)
class Board:
    """A leaderboard by one measure, with the inputs to compute it again.

    Attributes:
        means: each run's mean, shape (n_runs,).
        rankings: query_id -> each run's doc_ids for it, best first; empty where it skips the query.
        weights: query_id -> what each run's value on it counts in its mean, shape (n_runs,): 1 over the
            number of queries that the mean is over, or 0.
    """

    means: Floats
    rankings: Mapping[str, Sequence[Sequence[str]]]
    weights: Mapping[str, Floats]


@dataclass(frozen=True, eq=False)
class PossibleJudgments:
    """The possible judgments of a query's whole passages or of its cells.

    Attributes:
        chances: what the person would say; of passages, shape (n_docs,), or of cells, (n_docs, n_items).
        included: which of them count, in that shape.
        alike: a number for each passage, shape (n_docs,); equal numbers are equal texts; a rating of
            one counts for all.
    """

    chances: Chances
    included: NDArray[np.bool_]
    alike: Ints


class Effects(NamedTuple):
    """The expected effects of judgments; each array has the shape of the judged cells.

    Attributes:
        swaps: pairs of runs whose order changes; to become tied, or to be tied no more, is half a swap.
        change: how much the difference of two runs' means changes, either way, averaged over the pairs.
        p_change: the probability of another label (passages), or rating (cells), than now.
        now: the label (passages) or rating (cells); -1 if missing.
    """

    swaps: Floats
    change: Floats
    p_change: Floats
    now: Ints


def expected_effects(q: QueryRatings, possible: PossibleJudgments, board: Board, scoring: Scoring) -> Effects:
    """The expected effects of judging each passage, or each cell, of a query; one judgment at a time.

    With P(r) the probability that the person gives rating r, and m(r) the runs' means after that,

        swaps  = sum over r of P(r) * sum over pairs of runs of |sign(m_a(r) - m_b(r)) - sign(m_a - m_b)| / 2
        change = sum over r of P(r) * mean over pairs of runs of |(m_a(r) - m_b(r)) - (m_a - m_b)|

    Means that agree to 12 decimals are ties, as on the leaderboard.

    Args:
        board: the leaderboard on these ratings, with two runs or more.

    Returns:
        Shape (n_docs,) for passages, (n_docs, n_items) for cells; 0 swaps and change where not included.

    Raises:
        ValueError: passages are given, and the measure is computed on items.
    """
    included, probabilities = possible.included, possible.chances.values
    whole = included.ndim == 1
    if whole and scoring.on_items:
        raise ValueError(
            f"{scoring.measure} is computed from the items' ratings and does not use labels of passages"
        )
    before, after = _levels(q, scoring) if scoring.on_items else _labels(q, scoring, whole)
    tried = (after != before[..., None]) & (probabilities > 0) & included[..., None]
    # Equal outcomes are evaluated once: several ratings, or cells of a passage, can lead to one label.
    outcomes: dict[_Outcome, int] = {}
    uses: list[tuple[tuple[int, ...], int, float]] = []
    for index in map(tuple, np.argwhere(tried).tolist()):
        docs = tuple(np.flatnonzero(possible.alike == possible.alike[index[0]]).tolist())
        outcome = _Outcome(docs, index[1] if scoring.on_items else None, int(after[index]))
        uses.append((index[:-1], outcomes.setdefault(outcome, len(outcomes)), float(probabilities[index])))
    of_outcome = _effects(q, list(outcomes), board, scoring)
    swaps, change = np.zeros(included.shape), np.zeros(included.shape)
    for index, outcome_at, probability in uses:
        swaps[index] += probability * of_outcome[0][outcome_at]
        change[index] += probability * of_outcome[1][outcome_at]
    now = before if whole else q.ratings.astype(np.int64)
    other = after != now[..., None] if whole else np.arange(RATINGS) != now[..., None]
    return Effects(swaps, change, np.where(other, probabilities, 0).sum(axis=-1), now)


class _Outcome(NamedTuple):
    """A changed outcome: labels of some passages, or the number of thresholds that they reach on an item."""

    docs: tuple[int, ...]
    item: int | None
    value: int


def _labels(q: QueryRatings, scoring: Scoring, whole: bool) -> tuple[Ints, Ints]:
    """The labels now, and with each rating of the passage or cell; -1 if missing."""

    def of(changed: QueryRatings) -> Ints:
        label_of = labels(changed, scoring.rule, scoring.min_rating, scoring.min_answers)
        return np.array([label_of.get(doc_id, MISSING) for doc_id in q.doc_ids], np.int64)

    before = of(q)
    if whole:
        labels_if_rated = [
            of(replace(q, human=dict.fromkeys(q.doc_ids, rating))) for rating in range(RATINGS)
        ]
        return before, np.stack(labels_if_rated, axis=-1)
    after = np.empty((len(q.doc_ids), q.n_items, RATINGS), np.int64)
    for item in range(q.n_items):
        for rating in range(RATINGS):
            changed = q.ratings.copy()
            changed[:, item] = rating
            after[:, item, rating] = of(replace(q, ratings=changed))
    return np.repeat(before[:, None], q.n_items, axis=1), after


def _levels(q: QueryRatings, scoring: Scoring) -> tuple[Ints, Ints]:
    """The number of thresholds that each cell reaches now, and with each rating."""

    def of(ratings: NDArray[np.integer]) -> Ints:
        return np.searchsorted(scoring.thresholds, ratings, side="right").astype(np.int64)

    return of(q.ratings), np.broadcast_to(of(np.arange(RATINGS)), (*q.ratings.shape, RATINGS))


def _effects(
    q: QueryRatings, outcomes: Sequence[_Outcome], board: Board, scoring: Scoring
) -> tuple[Floats, Floats]:
    """Swaps and change of each outcome."""
    rankings = [tuple(ranking[: _depth(scoring.measure)]) for ranking in board.rankings[q.query_id]]
    # Runs of one group often agree on a query.
    different = {ranking: index for index, ranking in enumerate(dict.fromkeys(rankings))}
    of_run = [different[ranking] for ranking in rankings]
    now = _values(q, [None], list(different), scoring)
    size = q.ratings.size if scoring.on_items else len(q.doc_ids)
    step = max(1, _ROWS // max(1, size + max(map(len, different), default=0)))
    swaps, change = np.zeros(len(outcomes)), np.zeros(len(outcomes))
    for start in range(0, len(outcomes), step):
        part = slice(start, start + step)
        moved = _values(q, outcomes[part], list(different), scoring) - now
        swaps[part], change[part] = _over_pairs(board.means, moved[:, of_run] * board.weights[q.query_id])
    return swaps, change


def _depth(measure: Measure) -> int | None:
    """The depth of a measure; None for the whole ranking."""
    # judged_only passes over unjudged passages before it counts.
    cutoff: int | None = measure.params.get("cutoff")
    return None if measure.params.get("judged_only") else cutoff


def _values(
    q: QueryRatings,
    outcomes: Sequence[_Outcome | None],
    rankings: Sequence[Sequence[str]],
    scoring: Scoring,
) -> Floats:
    """The value of each ranking under each outcome (None: unchanged), shape (n_outcomes, n_rankings)."""
    if scoring.measure.NAME in COVER:
        return _covers(q, outcomes, rankings, scoring)
    query_ids = [str(number) for number in range(len(outcomes))]
    judgments = _on_items(q, outcomes, scoring) if scoring.on_items else _on_labels(q, outcomes, scoring)
    evaluate = judgments.evaluator([scoring.measure], query_ids)
    name = str(scoring.measure)
    values = np.empty((len(outcomes), len(rankings)))
    for column, ranking in enumerate(rankings):
        by_query = evaluate(dict.fromkeys(query_ids, ranking))
        values[:, column] = [by_query[query_id][name] for query_id in query_ids]
    return values


def _covers(
    q: QueryRatings,
    outcomes: Sequence[_Outcome | None],
    rankings: Sequence[Sequence[str]],
    scoring: Scoring,
) -> Floats:
    """`_values` for Cover and nCover, computed from the number of passages that reach each item.

    Evaluating a query for each outcome would take minutes for a query that 100 runs answer.
    """
    weights = np.ones(q.n_items)
    if scoring.measure["weights"] != EQUAL:
        importances = q.importances or ("",) * q.n_items
        weights = item_weights(scoring.measure["weights"], importances, q.weights)
    number_of = {doc_id: number for number, doc_id in enumerate(q.doc_ids)}
    tried = [(at, outcome) for at, outcome in enumerate(outcomes) if outcome is not None]
    at = np.array([index for index, _ in tried], np.intp)
    item = np.array([outcome.item for _, outcome in tried], np.intp)
    level = np.array([outcome.value for _, outcome in tried], np.int64)
    owner = np.repeat(np.arange(len(tried)), [len(outcome.docs) for _, outcome in tried])
    docs = np.array([doc for _, outcome in tried for doc in outcome.docs], np.intp)
    reached_from = [(q.ratings >= threshold).astype(np.int64) for threshold in scoring.thresholds]

    def covered(inside: NDArray[np.bool_]) -> Floats:
        """The credit for items that these passages reach under each outcome: an equal share per threshold."""
        is_inside = inside[docs].astype(np.int64)
        credited = np.zeros(len(outcomes))
        for passed, reached in enumerate(reached_from, 1):
            counts = reached[inside].sum(axis=0)
            was = reached[docs, item[owner]] if len(docs) else docs
            less = np.bincount(owner, is_inside * was, len(tried))
            more = np.bincount(owner, is_inside, len(tried)) * (level >= passed)
            credited += weights @ (counts > 0)
            credited[at] += weights[item] * (
                ((counts[item] - less + more) > 0).astype(float) - (counts[item] > 0)
            )
        return credited / len(reached_from)

    whole = np.full(len(outcomes), whole_weight(weights))
    if scoring.measure.NAME == "nCover":
        whole = covered(np.ones(len(q.doc_ids), np.bool_))
    values = np.zeros((len(outcomes), len(rankings)))
    for column, ranking in enumerate(rankings):
        inside = np.zeros(len(q.doc_ids), np.bool_)
        inside[[number_of[doc_id] for doc_id in ranking if doc_id in number_of]] = True
        np.divide(covered(inside), whole, out=values[:, column], where=whole > 0)
    return values


def _on_labels(q: QueryRatings, outcomes: Sequence[_Outcome | None], scoring: Scoring) -> Judgments:
    now = labels(q, scoring.rule, scoring.min_rating, scoring.min_answers)
    rows: list[Qrel] = []
    for number, outcome in enumerate(outcomes):
        changed = {} if outcome is None else {q.doc_ids[doc]: outcome.value for doc in outcome.docs}
        rows += (Qrel(str(number), doc_id, label) for doc_id, label in {**now, **changed}.items())
    # These measures treat labels like official judgments.
    return OfficialJudgments(rows)


def _on_items(q: QueryRatings, outcomes: Sequence[_Outcome | None], scoring: Scoring) -> Judgments:
    queries = []
    for number, outcome in enumerate(outcomes):
        ratings = q.ratings
        if outcome is not None:
            ratings = ratings.copy()
            ratings[list(outcome.docs), outcome.item] = scoring.thresholds[0] if outcome.value else 0
        queries.append(replace(q, query_id=str(number), ratings=ratings))
    return RubricJudgments(queries, scoring.rule, scoring.min_rating, scoring.min_answers)


def _over_pairs(means: Floats, moved: Floats) -> tuple[Floats, Floats]:
    """Swaps and change for each row of `moved`, what is added to the means, shape (n, n_runs)."""
    first, second = np.triu_indices(len(means), k=1)
    before = np.round(means, TIE_DECIMALS)
    order = np.sign(before[first] - before[second])
    swaps, change = np.zeros(len(moved)), np.zeros(len(moved))
    step = max(1, _CELLS // len(first))
    for start in range(0, len(moved), step):
        part = slice(start, start + step)
        after = np.round(means + moved[part], TIE_DECIMALS)
        swaps[part] = np.abs(np.sign(after[:, first] - after[:, second]) - order).sum(axis=1) / 2
        change[part] = np.abs(moved[part][:, first] - moved[part][:, second]).mean(axis=1)
    return swaps, change
