"""Which passages to judge so that learning gains most: the most retrieved ones, and a few drawn at random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.learn.arithmetic.features import Floats

Bools = NDArray[np.bool_]


class Planned(NamedTuple):
    """A passage to judge: the places of its query and among its passages; and whether it was drawn."""

    query: int
    passage: int
    random: bool


def judging_rounds(
    weights: Sequence[Floats], unjudged: Sequence[Bools], share: float, seed: int | Sequence[int]
) -> Iterator[list[Planned]]:
    """Round after round a passage of each query, until none is left.

    A passage is its query's most retrieved one that is left; or, as a share of all of them that is the same
    after any number of rounds (rounded up at a place in a round that the seed decides), one drawn from all
    that are left. So a plan of fewer rounds is the beginning of one of more.

    Args:
        weights: of each query's passages, see `retrieved_weights`; of equal ones the first is taken.
        unjudged: of the same passages, those to choose from.
        share: of random ones, 0..1.
        seed: the same seed gives the same plan.
    """
    rng = np.random.default_rng(seed)
    orders = [np.argsort(-of_query, kind="stable") for of_query in weights]
    left = [order[of_query[order]].tolist() for order, of_query in zip(orders, unjudged, strict=True)]
    # The first random one is as likely anywhere in a stretch that is to have one.
    owed = rng.random()
    while any(left):
        queries = [query for query, of_query in enumerate(left) if of_query]
        drawn = set()
        for query in rng.permutation(queries).tolist():
            owed += share
            # Rounding must not cost a plan that is all random its last one.
            if owed >= 1 - 1e-9:
                owed -= 1
                drawn.add(query)
        yield [
            Planned(
                query,
                left[query].pop(int(rng.integers(len(left[query]))) if query in drawn else 0),
                query in drawn,
            )
            for query in queries
        ]
