"""What people look at before they trust grades: cells, missed passages, items that discriminate badly.

Three views after Farzi & Dietz, "A Workbench for Autograding Retrieve/Generate Systems", SIGIR 2024
(verification and supervision): the grades with the answers behind them, relevant passages that no item
reaches (the bank lacks an item), and items that non-relevant passages reach (the item is too easy, or asks
something else). A passage reaches an item where it is rated min_rating or better on it; it is relevant where
its official judgment is min_relevant or better. Negative judgments are judgments: not relevant.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from converters.records import Item
from trecexam.scores.ratings import MISSING, QueryRatings

#: What became of a cell; of those without a rating the ones come first that have an answer to look at.
STATUSES = ("ok", "unparsed", "refused", "error", "missing", "no_text")
#: What `worst_first` orders by.
Order = Literal["phi", "nonrelevant", "precision", "discrimination"]
#: Of a pooled passage its id, judgment and label, if there are any, and its ratings on all items.
GridRow = tuple[str, int | None, int | None, list[int]]


class GradedCell(NamedTuple):
    """One passage's grade on one item: a row of `verify grading`.

    Attributes:
        item_index: the item's place in the bank, from 1.
        item: its text.
        rating: as it counts in the scores, 0..5; None where there is none that counts.
        source: who gave `rating`: "model" or "human"; "" where there is none.
        machine: the grader's own rating, None where it gave none.
        status: of the grader's answer: "ok", "unparsed", "refused", "error"; "missing" where there is no
            answer, "no_text" where the passage has no text to grade.
        probability: of `machine`, None where the grader gives none.
        judgment: the official one, None where there is none.
        answer: what the grader said, as it came.
        text: of the passage, None where there is none.
    """

    query_id: str
    item_index: int
    item_id: str
    item: str
    doc_id: str
    rating: int | None
    source: str
    machine: int | None
    status: str
    probability: float | None
    judgment: int | None
    answer: str
    text: str | None


@dataclass(frozen=True)
class Missed:
    """A relevant passage that reaches no item.

    Attributes:
        best_rating: its best one over the items, 0..min_rating-1.
        best_items: the places (from 0) of the items on which it has that.
        n_rated: on how many items it has a rating; fewer than there are where grades are missing.
    """

    doc_id: str
    judgment: int
    best_rating: int
    best_items: tuple[int, ...]
    n_rated: int


@dataclass(frozen=True)
class RelevantPassages:
    """What became of a query's relevant passages; each is counted once.

    Attributes:
        reached: those that reach an item.
        missed: those that are rated and reach none; best judgment first, then worst rating.
        unrated: pooled ones with a text but no rating: not graded, or no answer could be read.
        without_text: pooled ones that cannot be graded for lack of a text.
        outside: those that are not in the pool.
    """

    query_id: str
    reached: int
    missed: tuple[Missed, ...]
    unrated: int
    without_text: int
    outside: int

    @property
    def relevant(self) -> int:
        """All of them."""
        return self.reached + len(self.missed) + self.unrated + self.without_text + self.outside

    @property
    def missed_share(self) -> float:
        """Missed ones among those with a rating, 0..1; NaN where there are none."""
        rated = self.reached + len(self.missed)
        return len(self.missed) / rated if rated else math.nan


@dataclass(frozen=True)
class ItemReach:
    """How well an item tells relevant from non-relevant passages, over those rated on it and judged.

    Attributes:
        index: the item's place in the bank, from 1.
        relevant, nonrelevant: passages that are so.
        relevant_reached, nonrelevant_reached: those of them that reach the item.
        relevant_only, nonrelevant_only: those of them that reach no other item of the query: what would
            no longer be found relevant if the item were dropped.
        discrimination: a of the item response model in which the runs are the examinees: how steeply the
            chance of covering the item rises with a run's ability. NaN where all or none of the runs cover
            it, or too few runs are here.
    """

    query_id: str
    index: int
    item: Item
    relevant: int
    relevant_reached: int
    relevant_only: int
    nonrelevant: int
    nonrelevant_reached: int
    nonrelevant_only: int
    discrimination: float = math.nan

    @property
    def precision(self) -> float:
        """Relevant passages among those that reach the item, 0..1; NaN where none does."""
        reached = self.relevant_reached + self.nonrelevant_reached
        return self.relevant_reached / reached if reached else math.nan

    @property
    def phi(self) -> float:
        """The item's discrimination: the phi coefficient of reaching it and being relevant, -1..1.

        Pearson's correlation of two yes-or-no variables, which the point-biserial correlation becomes where
        the criterion is one too (Yule, "On the methods of measuring association between two attributes",
        Journal of the Royal Statistical Society 75, 1912). With an outside criterion in place of the test's
        total score it is what item analysis calls an item's validity (Crocker & Algina, "Introduction to
        Classical and Modern Test Theory", 1986, chapter 14). Below 0, non-relevant passages reach the item
        more often than relevant ones. NaN where all passages are alike in one of the two (`note` says which).
        """
        hit, false = self.relevant_reached, self.nonrelevant_reached
        miss, reject = self.relevant - hit, self.nonrelevant - false
        spread = math.prod((self.relevant, self.nonrelevant, hit + false, miss + reject))
        return (hit * reject - false * miss) / math.sqrt(spread) if spread else math.nan

    @property
    def note(self) -> str:
        """Why the item cannot discriminate here; "" where it can."""
        judged = self.relevant + self.nonrelevant
        reached = self.relevant_reached + self.nonrelevant_reached
        if not judged:
            return "no judged passage is rated on it"
        if reached in (0, judged):
            return "reached by all" if reached else "reached by none"
        if not self.relevant:
            return "no relevant passage"
        return "" if self.nonrelevant else "no non-relevant passage"


def best_first(cells: Iterable[GradedCell]) -> list[GradedCell]:
    """Cells by rating, the best first, then those without one by their status; ties by document id."""
    return sorted(
        cells,
        key=lambda cell: (
            -(MISSING if cell.rating is None else cell.rating),
            STATUSES.index(cell.status),
            cell.doc_id,
        ),
    )


def grid_order(row: GridRow) -> tuple[bool, int, bool, int, int, str]:
    """Sorts rows: best judgment first, unjudged ones last; then best label, then most ratings."""
    doc_id, judgment, label, ratings = row
    rated = sum(max(rating, 0) for rating in ratings)
    return judgment is None, -(judgment or 0), label is None, -(label or 0), -rated, doc_id


def relevant_passages(
    q: QueryRatings,
    judgments: Mapping[str, int],
    without_text: Collection[str],
    min_rating: int,
    min_relevant: int,
) -> RelevantPassages:
    """What became of the passages that are judged relevant.

    A person's rating of a passage as a whole is for no item, so it reaches none.

    Args:
        judgments: doc_id -> judgment, also of passages outside of the pool.
        without_text: pooled passages that cannot be graded.
        min_rating: 1..5.
    """
    rows = dict(zip(q.doc_ids, q.ratings, strict=True))
    missed = []
    reached = unrated = no_text = outside = 0
    for doc_id, judgment in judgments.items():
        if judgment < min_relevant:
            continue
        ratings = rows.get(doc_id)
        best = MISSING if ratings is None else int(ratings.max(initial=MISSING))
        if ratings is None:
            outside += 1
        elif best >= min_rating:
            reached += 1
        elif best != MISSING:
            items = tuple((ratings == best).nonzero()[0].tolist())
            missed.append(Missed(doc_id, judgment, best, items, int((ratings != MISSING).sum())))
        elif doc_id in without_text:
            no_text += 1
        else:
            unrated += 1
    missed.sort(key=lambda m: (-m.judgment, m.best_rating, m.doc_id))
    return RelevantPassages(q.query_id, reached, tuple(missed), unrated, no_text, outside)


def item_reaches(
    q: QueryRatings, items: Sequence[Item], judgments: Mapping[str, int], min_rating: int, min_relevant: int
) -> list[ItemReach]:
    """A record for each item of the query, in the bank's order.

    Args:
        items: the query's, `q.n_items` of them.
        judgments: doc_id -> judgment.
        min_rating: 1..5.
    """
    judged = np.array([doc_id in judgments for doc_id in q.doc_ids], bool)
    relevant = np.array(
        [judgments.get(doc_id, min_relevant - 1) >= min_relevant for doc_id in q.doc_ids], bool
    )
    reaches = q.ratings >= min_rating
    only_this = reaches & (reaches.sum(axis=1) == 1)[:, None]
    item_reaches = []
    for item_index, item in enumerate(items):
        counts = []
        for group in (judged & relevant, judged & ~relevant):
            rated = group & (q.ratings[:, item_index] != MISSING)
            counts += [int(rated.sum())]
            counts += [int((group & reached[:, item_index]).sum()) for reached in (reaches, only_this)]
        item_reaches.append(ItemReach(q.query_id, item_index + 1, item, *counts))
    return item_reaches


def worst_first(items: Iterable[ItemReach], order: Order = "phi") -> list[ItemReach]:
    """Items in the order in which to doubt them.

    Args:
        order: "phi": least discrimination first, where an undefined one is 0: such an item tells nothing.
            "nonrelevant": most non-relevant passages reached first. "precision": least first, items that
            nothing reaches last. "discrimination": least first, where an undefined one is 0. Ties: most
            non-relevant passages first, then query and place in the bank.
    """

    def doubt(reach: ItemReach) -> tuple[float, int, str, int]:
        if order == "nonrelevant":
            value: float = -reach.nonrelevant_reached
        else:
            measured, undefined = {
                "phi": (reach.phi, 0.0),
                "precision": (reach.precision, 2.0),
                "discrimination": (reach.discrimination, 0.0),
            }[order]
            value = undefined if math.isnan(measured) else measured
        return value, -reach.nonrelevant_reached, reach.query_id, reach.index

    return sorted(items, key=doubt)
