"""Missed passages, and items that discriminate badly.

After Farzi & Dietz, "A Workbench for Autograding Retrieve/Generate Systems", SIGIR 2024 (verification and
supervision): relevant passages that no item reaches (the bank lacks an item), and items that non-relevant
passages reach (the item is too easy, or asks something else). A passage reaches an item where it is rated
min_rating or better on it; it is relevant where its official judgment is min_relevant or better. Negative
judgments are judgments: not relevant.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from converters.records import Item
from trecexam.scores.ratings import MISSING, QueryRatings

#: Sort keys of `worst_first`.
Order = Literal["phi", "nonrelevant", "precision", "discrimination"]


class Missed(NamedTuple):
    """A relevant passage that reaches no item.

    Attributes:
        best_rating: the passage's best rating over the items, 0..min_rating-1.
        best_items: indices (from 1) of the items with this rating, separated by blanks.
        rated_items: number of items with a rating of the passage.
    """

    doc_id: str
    judgment: int
    best_rating: int
    best_items: str
    rated_items: int


class RelevantPassages(NamedTuple):
    """Counts of a query's relevant passages by outcome; each passage counts once.

    Attributes:
        reached: passages that reach an item.
        missed: rated passages that reach no item.
        missed_share: share of missed passages among rated ones, 0..1; NaN without rated passages.
        unrated: pooled passages with a text but no rating: not graded, or without a readable answer.
        without_text: pooled passages without a text.
        outside_pool: passages outside of the pool.
    """

    query_id: str
    relevant: int
    reached: int
    missed: int
    missed_share: float
    unrated: int
    without_text: int
    outside_pool: int


@dataclass(frozen=True)
class ItemReach:
    """Counts for an item: how well it tells relevant from non-relevant passages, if judged and rated.

    Attributes:
        index: the item's place in the bank, from 1.
        relevant, nonrelevant: numbers of these passages.
        relevant_reached, nonrelevant_reached: numbers of these passages that reach the item.
        relevant_only, nonrelevant_only: numbers of these passages that reach no other item of the query, and
            would no longer be labelled relevant without the item.
        discrimination: a of the item response model in which the runs are the examinees: how steeply the
            chance of covering the item rises with a run's ability. NaN if all or none of the runs cover it,
            or with too few runs.
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
        """Share of relevant passages among passages that reach the item, 0..1; NaN if none does."""
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
        more often than relevant ones. NaN if one of the variables is constant (see `note`).
        """
        hit, false = self.relevant_reached, self.nonrelevant_reached
        miss, reject = self.relevant - hit, self.nonrelevant - false
        spread = math.prod((self.relevant, self.nonrelevant, hit + false, miss + reject))
        return (hit * reject - false * miss) / math.sqrt(spread) if spread else math.nan

    @property
    def note(self) -> str:
        """Reason why the item cannot discriminate here; "" if it can."""
        judged = self.relevant + self.nonrelevant
        reached = self.relevant_reached + self.nonrelevant_reached
        if not judged:
            return "no judged passage is rated on it"
        if reached in (0, judged):
            return "reached by all" if reached else "reached by none"
        if not self.relevant:
            return "no relevant passage"
        return "" if self.nonrelevant else "no non-relevant passage"


def relevant_passages(
    q: QueryRatings,
    judgments: Mapping[str, int],
    without_text: Collection[str],
    min_rating: int,
    min_relevant: int,
) -> tuple[RelevantPassages, list[Missed]]:
    """Count relevant passages by outcome, and list the missed passages.

    A person's rating of a whole passage reaches no item.

    Args:
        judgments: doc_id -> judgment, also of passages outside of the pool.
        without_text: pooled passages that cannot be graded.
        min_rating: 1..5.

    Returns:
        The counts; the missed passages, best judgment first, then worst rating.
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
            at_best = " ".join(str(column + 1) for column in (ratings == best).nonzero()[0].tolist())
            missed.append(Missed(doc_id, judgment, best, at_best, int((ratings != MISSING).sum())))
        elif doc_id in without_text:
            no_text += 1
        else:
            unrated += 1
    missed.sort(key=lambda m: (-m.judgment, m.best_rating, m.doc_id))
    n_missed, rated = len(missed), reached + len(missed)
    share = n_missed / rated if rated else math.nan
    n_relevant = rated + unrated + no_text + outside
    counts = RelevantPassages(q.query_id, n_relevant, reached, n_missed, share, unrated, no_text, outside)
    return counts, missed


def item_reaches(
    q: QueryRatings, items: Sequence[Item], judgments: Mapping[str, int], min_rating: int, min_relevant: int
) -> list[ItemReach]:
    """Return a record for each item of the query, in the bank's order; `judgments` are doc_id -> judgment."""
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
    """Return items, most doubtful first.

    Args:
        order: "phi": least discrimination first, where an undefined one is 0: such an item tells nothing.
            "nonrelevant": most non-relevant passages reached first. "precision": least first, items that
            nothing reaches last. "discrimination": least first, where an undefined one is 0. Ties: most
            non-relevant passages first, then query and place in the bank.
    """

    def doubt(reach: ItemReach) -> tuple[float, int, str, int]:
        value = -reach.nonrelevant_reached if order == "nonrelevant" else getattr(reach, order)
        if math.isnan(value):
            value = 2.0 if order == "precision" else 0.0
        return value, -reach.nonrelevant_reached, reach.query_id, reach.index

    return sorted(items, key=doubt)
