"""A leaderboard and what it was made from, as far as a later one is compared with it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from trecexam.scores.ties import TIE_DECIMALS


class ItemKey(NamedTuple):
    """An item of a bank: its id, the digest of what a grader is asked about it, and its importance.

    The importance is None where that was not noted; the item's weight, where it has one, stands behind it.
    """

    item_id: str
    digest: str
    importance: str | None = None


@dataclass(frozen=True)
class QuerySnapshot:
    """One query's bank and labels.

    Attributes:
        items: in the bank's order.
        passages: doc_id -> (label, reached): bit i of `reached` is set where the passage reaches item i.
        retired: the ids of its retired items.
    """

    items: tuple[ItemKey, ...]
    passages: Mapping[str, tuple[int, int]]
    retired: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunState:
    """One run on a leaderboard.

    Attributes:
        digest: of its file.
        means: in the order of the measures; None where there is none.
        values: query_id -> value of the first measure.
    """

    digest: str
    means: tuple[float | None, ...]
    values: Mapping[str, float | None]


@dataclass(frozen=True)
class LeaderboardSnapshot:
    """A leaderboard and what it was made from.

    Attributes:
        measures: as ir_measures prints them; the first one ranks the runs.
        runs: by name.
        queries: by query_id.
    """

    measures: tuple[str, ...]
    runs: Mapping[str, RunState]
    queries: Mapping[str, QuerySnapshot]


def ranks(snapshot: LeaderboardSnapshot) -> dict[str, int]:
    """run -> its rank by the first measure, from 1; runs with equal means share the better rank."""
    keys = {name: _key(run.means[0]) if run.means else 0.0 for name, run in snapshot.runs.items()}
    first: dict[float, int] = {}
    for place, key in enumerate(sorted(keys.values(), reverse=True), 1):
        first.setdefault(key, place)
    return {name: first[key] for name, key in keys.items()}


def same_value(value: float | None, other: float | None) -> bool:
    """Whether two means, or values, are no further apart than how a sum was rounded."""
    return value == other or (value is not None and other is not None and _key(value) == _key(other))


def _key(mean: float | None) -> float:
    return -math.inf if mean is None else round(mean, TIE_DECIMALS)
