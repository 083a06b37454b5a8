"""The probability of each rating by a person, estimated from graders' ratings.

Where a grader gives no probabilities, disagreement replaces them: of several opinions of the same
thing a person's is assumed to be like one of them, each as probable as the other, so that opinions which
agree are sure. This is a rule for choosing what to judge, not a claim about people.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.expected import best_at_least
from trecexam.scores.labels import labels
from trecexam.scores.ratings import MAX_RATING, MISSING, QueryRatings

#: The number of ratings: 0..5.
RATINGS = MAX_RATING + 1
#: The sources of probabilities, see `cell_chances` and `passage_chances`.
DISTRIBUTION, GRADERS, ITEMS = "distribution", "graders", "items"
#: Smaller probabilities count as 0, because sums are inexact.
_LEAST = 1e-9

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Opinions:
    """Evidence on a query's cells besides their ratings. Cells that a person rated are certain.

    Attributes:
        stated: the grader's own probabilities of the ratings 0..5, shape (n_docs, n_items, 6); NaN where it
            gave none.
        others: the ratings of other graders on the same scale, int8 of shape (n_graders, n_docs, n_items);
            -1 if missing.
    """

    stated: Floats
    others: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Chances:
    """The probability of each rating by a person.

    Attributes:
        values: the probabilities of 0..5, shape (..., 6); they sum to 1, or are all 0 where nothing is rated.
        source: where they come from, shape (...): "distribution", "graders" or "items".
    """

    values: Floats
    source: NDArray[np.str_]


def cell_chances(q: QueryRatings, opinions: Opinions) -> Chances:
    """The probabilities of each cell with a rating.

    - "distribution": the probabilities that the grader gave;
    - "graders": else, where other graders rated the cell too, the share of all these graders, this one among
      them, that gave each rating;
    - "items": else the share of the query's items on which the passage has each rating.

    Returns:
        Shape (n_docs, n_items).
    """
    grader_votes = _one_hot(q.ratings)
    rated = q.ratings >= 0
    values = np.repeat(_shares(grader_votes.sum(axis=1))[:, None, :], q.n_items, axis=1)
    source = np.full(rated.shape, ITEMS, "<U12")
    votes = grader_votes + _one_hot(opinions.others).sum(axis=0)
    several = votes.sum(axis=2) > 1
    values[several], source[several] = _shares(votes[several]), GRADERS
    stated = ~np.isnan(opinions.stated).any(axis=2)
    values[stated], source[stated] = opinions.stated[stated], DISTRIBUTION
    values[~rated] = 0
    return Chances(_without_traces(values), source)


def passage_chances(q: QueryRatings, opinions: Opinions, min_answers: int = 1) -> Chances:
    """The probabilities of each whole passage's rating: its m-th best over items, m = min_answers.

    - "distribution": where the probabilities of all the passage's ratings are known. Items are taken to be
      independent: the m-th best rating is r or better where at least m items are rated so (a Poisson
      binomial distribution for each r);
    - "graders": else, where other graders rated every item that this one did, the share of all these graders
      by whose ratings it has each rating as a whole;
    - "items": else the share of the query's items on which it has each rating.

    In truth a passage's ratings go together, so that the first makes a high rating look surer than it is.
    The last thinks no passage better than its best rating.

    Returns:
        Shape (n_docs,).
    """
    rated = q.ratings >= 0
    values = _shares(_one_hot(q.ratings).sum(axis=1))
    source = np.full(len(q.doc_ids), ITEMS, "<U12")
    votes = np.zeros_like(values)
    for ratings in (q.ratings, *opinions.others):
        seen = replace(q, ratings=np.where(rated, ratings, np.int8(MISSING)), human={})
        label_of = labels(seen, "max", min_answers=min_answers)
        whole = np.array([label_of.get(doc_id, MISSING) for doc_id in q.doc_ids], np.int8)
        votes += np.where((seen.ratings >= 0) == rated, 1, 0).all(axis=1, keepdims=True) * _one_hot(whole)
    several = votes.sum(axis=1) > 1
    values[several], source[several] = _shares(votes[several]), GRADERS
    stated = ~np.isnan(opinions.stated).any(axis=2)
    all_stated = (stated >= rated).all(axis=1) & rated.any(axis=1)
    parts = np.where(rated[..., None], opinions.stated, 0.0)[all_stated]
    values[all_stated], source[all_stated] = _best(parts, min_answers), DISTRIBUTION
    values[~rated.any(axis=1)] = 0
    return Chances(_without_traces(values), source)


def _best(parts: Floats, m: int) -> Floats:
    """The distribution of the m-th best of independent ratings.

    Args:
        parts: their distributions, shape (n, n_ratings, 6); all 0 for a rating that there is not.

    Returns:
        Shape (n, 6).
    """
    enough = best_at_least(parts[..., ::-1].cumsum(axis=2)[..., ::-1], m)
    enough[:, 0] = 1.0
    enough[:, :-1] -= enough[:, 1:].copy()
    return enough


def _one_hot(ratings: NDArray[np.int8]) -> Floats:
    """One-hot vectors of the ratings in a last axis of length six; all 0 without a rating."""
    hot: Floats = (ratings[..., None] == np.arange(RATINGS)).astype(np.float64)
    return hot


def _shares(counts: Floats) -> Floats:
    total = counts.sum(axis=-1, keepdims=True)
    shares: Floats = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
    return shares


def _without_traces(values: Floats) -> Floats:
    return _shares(np.where(values < _LEAST, 0.0, values))
