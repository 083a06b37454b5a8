"""What ratings may still come: draws of those that are missing, from those that are there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.ratings import MAX_RATING, MISSING

#: Places in a passage's order of items at which another stratum begins: 2, 3, 4 and 7, counted from 1.
_PLACES = np.array([1, 2, 3, 6])
#: As how many ratings a wider stratum counts in a narrower one, and with how many an item begins.
_PRIOR, _PRIOR_OF_ITEM = 5.0, 0.5
_RATINGS = MAX_RATING + 1


@dataclass(frozen=True, eq=False)
class PartlyRated:
    """Passages of several queries whose items are rated one after the other, as far as that went.

    Attributes:
        query: int, for each passage the number of its query, from 0.
        items: int of shape (passages, places): the number of the item, over all queries, at each place of the
            passage's order.
        ratings: int8 of that shape: its rating, -1 where there is none.
        missing: bool of that shape: there will be one.
        weights: how high and by how many runs each passage is ranked.
        min_rating: from this rating on a passage reaches an item.
    """

    query: NDArray[np.intp]
    items: NDArray[np.intp]
    ratings: NDArray[np.int8]
    missing: NDArray[np.bool_]
    weights: NDArray[np.float64]
    min_rating: int

    def draws(self, n: int, seed: int = 0) -> Iterator[NDArray[np.int8]]:
        """`ratings` with what is missing drawn, n times.

        A missing rating is drawn from those at the same place (1, 2, 3, 4 to 6, later ones) of passages of
        the same query and third of weights that had as good a best rating before it (none, 0, below
        `min_rating`, or the same one from there on). Of these small strata the shares of ratings are drawn
        from a Dirichlet distribution whose prior is the stratum over all queries, and of that one the stratum
        over all weights, each as five ratings. The share above 0 is multiplied by how much more often than so
        the item was rated above 0: a draw from Gamma(0.5 + observed) / (0.5 + expected). A passage's places
        are drawn in turn, so that what was drawn counts as what was rated.
        """
        rng = np.random.default_rng(seed)
        bounds = [0, 1, *range(max(self.min_rating, 2), _RATINGS)]
        n_states, n_places = len(bounds) + 1, self.ratings.shape[1]
        first_state = n_states * np.searchsorted(_PLACES, np.arange(n_places), side="right")
        third = np.searchsorted(np.quantile(self.weights, [1 / 3, 2 / 3]), self.weights)
        none = np.full((len(self.query), 1), MISSING, np.int8)
        best = np.maximum.accumulate(np.hstack([none, self.ratings[:, :-1]]), axis=1)
        stratum = first_state + np.searchsorted(bounds, best, side="right")
        row, column = (self.ratings >= 0).nonzero()
        rated, item = self.ratings[row, column].astype(np.intp), self.items[row, column]
        of_cell = self.query[row], third[row], stratum[row, column]
        counts = np.zeros((self.query.max() + 1, 3, (len(_PLACES) + 1) * n_states, _RATINGS))
        np.add.at(counts, (*of_cell, rated), 1.0)
        of_weights, of_all = counts.sum(axis=0), counts.sum(axis=(0, 1))
        # Strata without any rating have the shares of all.
        of_all += _PRIOR * (of_all.sum(axis=0) + 1e-3) / (of_all.sum() + 1e-3 * _RATINGS)
        n_items = self.items.max() + 1
        above = np.bincount(item, rated > 0, minlength=n_items)
        for _ in range(n):
            shares = _dirichlet(rng, of_all)
            shares = _dirichlet(rng, of_weights + _PRIOR * shares)
            shares = _dirichlet(rng, counts + _PRIOR * shares)
            expected = np.bincount(item, 1 - shares[of_cell][:, 0], minlength=n_items)
            more = rng.standard_gamma(_PRIOR_OF_ITEM + above) / (_PRIOR_OF_ITEM + expected)
            # Of each rating but the last: the share of those above it.
            higher = np.maximum(1 - shares.cumsum(axis=-1)[..., :-1], 0)
            drawn, best_drawn = self.ratings.copy(), none[:, 0].copy()
            for place in range(n_places):
                at = self.missing[:, place].nonzero()[0]
                state = first_state[place] + np.searchsorted(bounds, best_drawn[at], side="right")
                limits = higher[self.query[at], third[at], state]
                times = more[self.items[at, place]]
                # Some passage may always be rated 0.
                times = np.minimum(times, 0.98 / np.maximum(limits[:, 0], 1e-9))
                drawn[at, place] = (rng.random((len(at), 1)) < limits * times[:, None]).sum(axis=1)
                np.maximum(best_drawn, drawn[:, place], out=best_drawn)
            yield drawn


def _dirichlet(rng: np.random.Generator, counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares along the last axis, a draw for each row of counts."""
    # All gammas of a row of next to nothing may be 0.
    drawn = rng.standard_gamma(counts) + 1e-12 * counts
    return np.asarray(drawn / drawn.sum(axis=-1, keepdims=True))
