"""Which runs moved between two leaderboards, and which labels and items did it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from trecexam.scores.values import TIE_DECIMALS
from trecexam.tables.text import plural

Rankings = Callable[[str, str], Sequence[str]]


class ItemKey(NamedTuple):
    """An item of a bank: its id, and the digest of the text that a grader gets."""

    item_id: str
    digest: str


@dataclass(frozen=True)
class QuerySnapshot:
    """One query's items and labels.

    Attributes:
        items: in the bank's order.
        passages: doc_id -> (label, reached): bit i of `reached` is set where the passage reaches item i.
    """

    items: tuple[ItemKey, ...]
    passages: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class RunSnapshot:
    """One run on a leaderboard.

    Attributes:
        digest: of its file.
        means: in the order of the measures; None where there is none.
    """

    digest: str
    means: tuple[float | None, ...]


@dataclass(frozen=True)
class LeaderboardSnapshot:
    """A leaderboard and the labels that it was made from.

    Attributes:
        measures: as ir_measures prints them; the first one ranks the runs.
        runs: by name.
        queries: by query_id.
    """

    measures: tuple[str, ...]
    runs: Mapping[str, RunSnapshot]
    queries: Mapping[str, QuerySnapshot]


@dataclass(frozen=True)
class LabelChange:
    """A passage whose label changed, or which reaches other items under the same label.

    `before` and `after` are None where it has no label: it was, or is, not in the pool or without a rating.
    `gained` and `lost` are the ids of the items that it reaches now and did not, and the other way round.
    """

    query_id: str
    doc_id: str
    before: int | None
    after: int | None
    gained: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True)
class RunChange:
    """One run before and after.

    Attributes:
        run: its name now; of a run that is gone, its last one.
        was: its name before, where the same file is called otherwise now; else None.
        change: "moved" where its rank or its mean of the first measure changed.
        rank_before, rank_after: from 1; runs with equal means share the better rank. None where the run is
            not there, or nothing was graded then.
        means: measure -> (before, after).
        file_changed: its file has other content.
        labels: how many of its first passages (to the pool's depth) have another label.
        items: how many of them reach other items under the same label.
    """

    run: str
    was: str | None
    change: Literal["new", "gone", "moved", "same"]
    rank_before: int | None
    rank_after: int | None
    means: Mapping[str, tuple[float | None, float | None]]
    file_changed: bool = False
    labels: int = 0
    items: int = 0

    def because(self, depth: int) -> str:
        """Why it moved, in a few words; "" where neither its file nor its first `depth` passages tell."""
        if self.change in ("new", "gone"):
            return self.change
        parts = [f"was called {self.was}"] if self.was else []
        if self.change == "same":
            return "".join(parts)
        if self.file_changed:
            parts.append("its file changed")
        if self.labels:
            parts.append(f"{plural(self.labels, 'label')} of its first {depth} changed")
        if self.items:
            parts.append(f"{plural(self.items, 'passage')} of its first {depth} with other items")
        if not parts and _same(*next(iter(self.means.values()))):
            parts.append("others moved")
        return "; ".join(parts)


@dataclass(frozen=True)
class BoardChange:
    """All that moved.

    Attributes:
        measures_before: () where nothing was before.
        depth: how many of a run's passages count as its first.
        runs: in the order of the new leaderboard, then those that are gone.
        labels: sorted by query and passage.
    """

    measures_before: tuple[str, ...]
    measures_after: tuple[str, ...]
    depth: int
    runs: tuple[RunChange, ...]
    labels: tuple[LabelChange, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing changed at all."""
        return (
            self.measures_before == self.measures_after
            and not self.labels
            and all(
                row.change == "same" and row.was is None and all(_same(*pair) for pair in row.means.values())
                for row in self.runs
            )
        )


def board_change(
    before: LeaderboardSnapshot | None, after: LeaderboardSnapshot, rankings: Rankings, depth: int
) -> BoardChange:
    """What moved from one leaderboard to the next.

    Args:
        before: None where nothing is known of it: then every run is new, and no label is listed.
        rankings: (run, query_id) -> its first `depth` doc_ids, of runs that are there now.
        depth: of the pool, in passages.
    """
    labels = () if before is None else tuple(label_changes(before.queries, after.queries))
    before = before or LeaderboardSnapshot((), {}, {})
    of_query: dict[str, dict[str, LabelChange]] = {}
    for label in labels:
        of_query.setdefault(label.query_id, {})[label.doc_id] = label
    old_ranks, new_ranks = ranks(before), ranks(after)
    was = _names(before.runs, after.runs)
    rows = []
    for name in sorted(after.runs, key=lambda name: (new_ranks.get(name, math.inf), name)):
        old, means = was.get(name), _means(before, after, was.get(name), name)
        if old is None:
            rows.append(RunChange(name, None, "new", None, new_ranks.get(name), means))
            continue
        same = before.measures[:1] == after.measures[:1] and _same(*means[after.measures[0]])
        stays = same and old_ranks.get(old) == new_ranks.get(name)
        changed = [
            of_query[query_id][doc_id]
            for query_id in of_query
            if not stays
            for doc_id in rankings(name, query_id)
            if doc_id in of_query[query_id]
        ]
        rows.append(
            RunChange(
                name,
                old if old != name else None,
                "same" if stays else "moved",
                old_ranks.get(old),
                new_ranks.get(name),
                means,
                before.runs[old].digest != after.runs[name].digest,
                sum(label.before != label.after for label in changed),
                sum(label.before == label.after for label in changed),
            )
        )
    removed_runs = sorted(
        before.runs.keys() - set(was.values()), key=lambda name: (old_ranks.get(name, math.inf), name)
    )
    rows += (
        RunChange(name, None, "gone", old_ranks.get(name), None, _means(before, after, name, None))
        for name in removed_runs
    )
    return BoardChange(before.measures, after.measures, depth, tuple(rows), labels)


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
    """run -> its rank by the first measure, from 1; runs with equal means share the better rank.

    A run without a mean, as nothing was graded then, has none.
    """
    has_mean = {name: run for name, run in snapshot.runs.items() if not run.means or run.means[0] is not None}
    keys = {name: _key(run.means[0]) if run.means else 0.0 for name, run in has_mean.items()}
    first: dict[float, int] = {}
    for rank, key in enumerate(sorted(keys.values(), reverse=True), 1):
        first.setdefault(key, rank)
    return {name: first[key] for name, key in keys.items()}


def _same(value: float | None, other: float | None) -> bool:
    """Whether two means are no further apart than how a sum was rounded."""
    return value == other or (value is not None and other is not None and _key(value) == _key(other))


def _key(mean: float | None) -> float:
    return -math.inf if mean is None else round(mean, TIE_DECIMALS)


def _bits(number: int) -> Iterator[int]:
    """The places of the bits that are set, lowest first."""
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


def _names(before: Mapping[str, RunSnapshot], after: Mapping[str, RunSnapshot]) -> dict[str, str]:
    """Name now -> name before, of the runs in both; a file that is called otherwise now is the same run."""
    was = {name: name for name in after if name in before}
    absent, added = (
        _by_digest({name: run for name, run in runs.items() if name not in was}) for runs in (before, after)
    )
    for digest, names in added.items():
        if len(names) == 1 and len(absent.get(digest, ())) == 1:
            was[names[0]] = absent[digest][0]
    return was


def _by_digest(runs: Mapping[str, RunSnapshot]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name, run in runs.items():
        names.setdefault(run.digest, []).append(name)
    return names


def _means(
    before: LeaderboardSnapshot, after: LeaderboardSnapshot, old: str | None, new: str | None
) -> dict[str, tuple[float | None, float | None]]:
    first = {} if old is None else dict(zip(before.measures, before.runs[old].means, strict=True))
    then = {} if new is None else dict(zip(after.measures, after.runs[new].means, strict=True))
    return {
        name: (first.get(name), then.get(name)) for name in dict.fromkeys((*after.measures, *before.measures))
    }
