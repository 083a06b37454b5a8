"""Runs that move between a leaderboard on one bank and one on another, and the labels that move them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from trecexam.bank.model import item_digest
from trecexam.results.terminal import printable
from trecexam.results.text import plural
from trecexam.scores.labels import labels
from trecexam.scores.values import TIE_DECIMALS

if TYPE_CHECKING:
    from trecexam.grades.graded_track import GradedTrack

Rankings = Callable[[str, str], Sequence[str]]


class ItemKey(NamedTuple):
    """An item of a bank: its id, and the digest of the text that a grader gets."""

    item_id: str
    digest: str


@dataclass(frozen=True)
class QuerySnapshot:
    """Items and labels of a query.

    Attributes:
        items: in the bank's order.
        passages: doc_id -> (label, reached): bit i of `reached` is set where the passage reaches item i.
    """

    items: tuple[ItemKey, ...]
    passages: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class LeaderboardSnapshot:
    """A leaderboard by one measure, and the labels behind it.

    Attributes:
        means: run -> mean; None where there is none.
        queries: by query_id.
    """

    means: Mapping[str, float | None]
    queries: Mapping[str, QuerySnapshot]


@dataclass(frozen=True)
class LabelChange:
    """A passage whose label changed, or which reaches other items under the same label.

    `before` and `after` are None where the passage has no label: it is not in the pool or without a rating.
    `gained` and `lost` are the ids of the items that the passage reaches only after, or only before.
    """

    query_id: str
    doc_id: str
    before: int | None
    after: int | None
    gained: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True)
class RunChange:
    """A run before and after.

    Attributes:
        rank_before, rank_after: from 1; runs with equal means share the better rank. None without a mean.
        labels: how many of its first passages (to the pool's depth) have another label; 0 if the run stays.
        items: how many of them reach other items under the same label.
    """

    run: str
    rank_before: int | None
    rank_after: int | None
    mean_before: float | None
    mean_after: float | None
    labels: int = 0
    items: int = 0

    @property
    def moved(self) -> bool:
        """Whether the rank or the mean changed."""
        return self.rank_before != self.rank_after or not _same(self.mean_before, self.mean_after)

    def because(self, depth: int) -> str:
        """Return why the run moved, in a few words; "" if it stays."""
        parts = [f"{plural(self.labels, 'label')} of its first {depth} changed"] if self.labels else []
        if self.items:
            parts.append(f"{plural(self.items, 'passage')} of its first {depth} with other items")
        if not parts and self.moved and _same(self.mean_before, self.mean_after):
            parts.append("others moved")
        return "; ".join(parts)


@dataclass(frozen=True)
class BoardChange:
    """All that moved.

    Attributes:
        depth: how many of a run's passages count as its first.
        runs: in the order of the new leaderboard.
        labels: sorted by query and passage.
    """

    depth: int
    runs: tuple[RunChange, ...]
    labels: tuple[LabelChange, ...] = ()


def board_change(
    before: LeaderboardSnapshot, after: LeaderboardSnapshot, rankings: Rankings, depth: int
) -> BoardChange:
    """Compare two leaderboards of the same runs.

    Args:
        rankings: (run, query_id) -> its first `depth` doc_ids.
        depth: of the pool, in passages.
    """
    changed = tuple(label_changes(before.queries, after.queries))
    of_query: dict[str, dict[str, LabelChange]] = {}
    for label in changed:
        of_query.setdefault(label.query_id, {})[label.doc_id] = label
    old_ranks, new_ranks = ranks(before), ranks(after)
    rows = []
    for name in sorted(after.means, key=lambda name: (new_ranks.get(name, math.inf), name)):
        standing = old_ranks.get(name), new_ranks.get(name), before.means.get(name), after.means[name]
        row = RunChange(name, *standing)
        if row.moved:
            first = [
                label_of[doc_id]
                for query_id, label_of in of_query.items()
                for doc_id in rankings(name, query_id)
                if doc_id in label_of
            ]
            n_labels = sum(label.before != label.after for label in first)
            row = RunChange(name, *standing, n_labels, len(first) - n_labels)
        rows.append(row)
    return BoardChange(depth, tuple(rows), changed)


def label_changes(
    before: Mapping[str, QuerySnapshot], after: Mapping[str, QuerySnapshot]
) -> Iterator[LabelChange]:
    """The passages that changed, by query and passage.

    An item is the same one where its text is the same, or else its id.
    """
    nothing = QuerySnapshot((), {})
    for query_id in sorted(before.keys() | after.keys()):
        old, new = before.get(query_id, nothing), after.get(query_id, nothing)
        if old == new:
            continue
        old_index, new_index = _places(old.items, new.items)
        for doc_id in sorted(old.passages.keys() | new.passages.keys()):
            label_before, reached_before = old.passages.get(doc_id, (None, 0))
            label_after, reached_after = new.passages.get(doc_id, (None, 0))
            if old.items == new.items and (label_before, reached_before) == (label_after, reached_after):
                continue
            then = {old_index[i]: old.items[i].item_id for i in _bits(reached_before)}
            now = {new_index[i]: new.items[i].item_id for i in _bits(reached_after)}
            gained = tuple(item_id for key, item_id in now.items() if key not in then)
            lost = tuple(item_id for key, item_id in then.items() if key not in now)
            if label_before != label_after or gained or lost:
                yield LabelChange(query_id, doc_id, label_before, label_after, gained, lost)


def _places(old: Sequence[ItemKey], new: Sequence[ItemKey]) -> tuple[list[object], list[object]]:
    """What tells the items of both sides apart: two that are the same one have the same."""
    unchanged = set(old) & set(new)
    texts = [{item.digest for item in items if item not in unchanged} for items in (old, new)]
    sides = []
    for items in (old, new):
        times: dict[object, int] = {}
        side: list[object] = []
        for item in items:
            key = item if item in unchanged else item.digest
            if item not in unchanged and item.digest not in texts[0] & texts[1]:
                key = item.item_id
            times[key] = times.get(key, 0) + 1
            side.append((key, times[key]))
        sides.append(side)
    return sides[0], sides[1]


def ranks(snapshot: LeaderboardSnapshot) -> dict[str, int]:
    """Return run -> rank, from 1; runs with equal means share the better rank, and no mean is no rank."""
    keys = {name: _key(mean) for name, mean in snapshot.means.items() if mean is not None}
    first: dict[float, int] = {}
    for rank, key in enumerate(sorted(keys.values(), reverse=True), 1):
        first.setdefault(key, rank)
    return {name: first[key] for name, key in keys.items()}


def _same(value: float | None, other: float | None) -> bool:
    """Whether two means are no further apart than how a sum was rounded."""
    return value == other or (value is not None and other is not None and _key(value) == _key(other))


def _key(mean: float) -> float:
    return round(mean, TIE_DECIMALS)


def _bits(number: int) -> Iterator[int]:
    """The places of the bits that are set, lowest first."""
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


def query_states(track: GradedTrack) -> dict[str, QuerySnapshot]:
    """Return query_id -> its items, and the labels and items of its passages."""
    scores = track.config.scores
    ratings = {query.query_id: query for query in track.ratings()}
    queries = {}
    for query_id, items in track.bank.items.items():
        query = ratings[query_id]
        query_labels = labels(query, scores.label, scores.min_rating, scores.min_answers)
        bits = dict(zip(query.doc_ids, _reached(query.ratings, scores.min_rating), strict=True))
        queries[query_id] = QuerySnapshot(
            tuple(ItemKey(printable(item.item_id), item_digest(item).hex()) for item in items),
            {doc_id: (label, bits.get(doc_id, 0)) for doc_id, label in sorted(query_labels.items())},
        )
    return queries


def _reached(ratings: Any, min_rating: int) -> Iterator[int]:
    """For each passage the items that it reaches, as bits."""
    import numpy as np

    packed = np.packbits(ratings >= min_rating, axis=1, bitorder="little")
    return (int.from_bytes(row.tobytes(), "little") for row in packed)
