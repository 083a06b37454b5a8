"""Which runs moved between two leaderboards, and the labels that did it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trecexam.features.history.arithmetic.counting import Counting
from trecexam.features.history.arithmetic.labels import ItemChange, LabelChange, label_changes
from trecexam.features.history.arithmetic.leaderboard_snapshot import (
    LeaderboardSnapshot,
    RunState,
    ranks,
    same_value,
)

#: For each run, no more than so many of the queries and of the labels that moved it are listed.
LISTED = 20

Placing = Literal["new", "gone", "moved", "same"]
Rankings = Callable[[str, str], Sequence[str]]


@dataclass(frozen=True)
class QueryMove:
    """A query on which a run's value of the first measure changed; None where the query is not there."""

    query_id: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class RunChange:
    """One run before and after.

    Attributes:
        run: its name now; of a run that is gone, its last one.
        was: its name before, where the same file is called otherwise now; else None.
        change: "moved" where its rank or its mean of the first measure changed.
        rank_before, rank_after: from 1; runs with equal means share the better rank. None where the run is
            not there.
        means: measure -> (before, after).
        file_changed: its file has other content.
        came_above: new runs that rank above it.
        went_above: runs that ranked above it and are gone.
        passed_by: runs in both leaderboards that got past it, less those that it got past.
        n_queries: queries on which its value of the first measure changed.
        labels: changes among its first passages (to the pool's depth) for these queries, of those that can
            change the first measure: see `BoardChange.counting`.
        beyond: the same of these queries' other passages, where they count: as what was there to be found.
        edited_queries: those of the queries in which items were added or removed.
        reweighed_queries: those in which items got another importance, where that counts.
        queries: the queries, greatest change first; at most `LISTED`.
        because: the changes counted in `labels`, in the order of `queries`; at most `LISTED`.
    """

    run: str
    was: str | None
    change: Placing
    rank_before: int | None
    rank_after: int | None
    means: Mapping[str, tuple[float | None, float | None]]
    file_changed: bool = False
    came_above: int = 0
    went_above: int = 0
    passed_by: int = 0
    n_queries: int = 0
    labels: int = 0
    beyond: int = 0
    edited_queries: int = 0
    reweighed_queries: int = 0
    queries: tuple[QueryMove, ...] = ()
    because: tuple[LabelChange, ...] = ()


@dataclass(frozen=True)
class BoardChange:
    """All that moved.

    Attributes:
        measures_before: () where nothing was before.
        counting: which changes can change the first measure.
        depth: how many of a run's passages count as its first.
        runs: in the order of the new leaderboard, then those that are gone.
        items: sorted by query, in the bank's order.
        labels: sorted by query and passage.
    """

    measures_before: tuple[str, ...]
    measures_after: tuple[str, ...]
    counting: Counting
    depth: int
    runs: tuple[RunChange, ...]
    items: tuple[ItemChange, ...] = ()
    labels: tuple[LabelChange, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing changed at all."""
        return (
            self.measures_before == self.measures_after
            and not self.items
            and not self.labels
            and all(
                row.change == "same"
                and row.was is None
                and all(same_value(*pair) for pair in row.means.values())
                for row in self.runs
            )
        )

    @property
    def reranked(self) -> bool:
        """Whether another measure ranks the runs than before."""
        return bool(self.measures_before) and self.measures_before[:1] != self.measures_after[:1]


def board_change(
    before: LeaderboardSnapshot | None,
    after: LeaderboardSnapshot,
    rankings: Rankings,
    counting: Counting,
    depth: int,
) -> BoardChange:
    """What moved from one leaderboard to the next.

    Args:
        before: None where nothing is known of it: then every run is new, and no label is listed.
        rankings: (run, query_id) -> its first `depth` doc_ids, of runs that are there now.
        counting: which changes can change the first measure.
        depth: of the pool, in passages.
    """
    if before is None:
        before = LeaderboardSnapshot((), {}, {})
        items: list[ItemChange] = []
        labels: list[LabelChange] = []
    else:
        items, labels = label_changes(before.queries, after.queries)
    old_ranks, new_ranks = ranks(before), ranks(after)
    was = _names(before.runs, after.runs)
    causes = _Causes(items, labels, rankings, counting)
    came = [rank for name, rank in new_ranks.items() if name not in was]
    went = [rank for name, rank in old_ranks.items() if name not in set(was.values())]
    rows: list[RunChange] = []
    for name in sorted(after.runs, key=lambda name: (new_ranks[name], name)):
        old = was.get(name)
        means = _means(before, after, old, name)
        if old is None:
            rows.append(RunChange(name, None, "new", None, new_ranks[name], means))
            continue
        rank = old_ranks[old], new_ranks[name]
        here, there = before.runs[old], after.runs[name]
        comparable = before.measures[:1] == after.measures[:1]
        stays = rank[0] == rank[1] and comparable and same_value(*means[after.measures[0]])
        came_above, went_above = sum(r < rank[1] for r in came), sum(r < rank[0] for r in went)
        rows.append(
            RunChange(
                name,
                old if old != name else None,
                "same" if stays else "moved",
                *rank,
                means,
                here.digest != there.digest,
                came_above,
                went_above,
                rank[1] - rank[0] - came_above + went_above,
                *(causes.of(name, _moves(here, there)) if comparable and not stays else ()),
            )
        )
    absent = sorted(before.runs.keys() - set(was.values()), key=lambda name: (old_ranks[name], name))
    rows += (
        RunChange(name, None, "gone", old_ranks[name], None, _means(before, after, name, None))
        for name in absent
    )
    return BoardChange(
        before.measures, after.measures, counting, depth, tuple(rows), tuple(items), tuple(labels)
    )


class _Causes:
    """Which of the changes stand among a run's first passages."""

    def __init__(
        self,
        items: Iterable[ItemChange],
        labels: Iterable[LabelChange],
        rankings: Rankings,
        counting: Counting,
    ) -> None:
        items = tuple(items)
        came_or_went = {"added", "removed", "retired", "un-retired"}
        self._edited = {item.query_id for item in items if item.change in came_or_went}
        # An item with another text may have another importance as well; then its grades are the reason.
        self._reweighed = {item.query_id for item in items if item.change == "reweighed"}
        if not counting.importance:
            self._reweighed = set()
        self._changes: dict[str, dict[str, LabelChange]] = {}
        for row in filter(counting.decides, labels):
            self._changes.setdefault(row.query_id, {})[row.doc_id] = row
        self._rankings = rankings
        self._local = counting.local

    def of(
        self, run: str, moves: Sequence[QueryMove]
    ) -> tuple[int, int, int, int, int, tuple[QueryMove, ...], tuple[LabelChange, ...]]:
        """The fields of RunChange from `n_queries` on."""
        queries = [move.query_id for move in moves]
        label_changes = [
            self._changes[query_id][doc_id]
            for query_id in queries
            if query_id in self._changes
            for doc_id in sorted(self._rankings(run, query_id))
            if doc_id in self._changes[query_id]
        ]
        everywhere = sum(len(self._changes.get(query_id, ())) for query_id in queries)
        return (
            len(moves),
            len(label_changes),
            0 if self._local else everywhere - len(label_changes),
            sum(query_id in self._edited for query_id in queries),
            sum(query_id in self._reweighed for query_id in queries),
            tuple(moves[:LISTED]),
            tuple(label_changes[:LISTED]),
        )


def _moves(before: RunState, after: RunState) -> list[QueryMove]:
    """The queries on which a value changed, greatest change first."""
    moves = [
        QueryMove(query_id, before.values.get(query_id), after.values.get(query_id))
        for query_id in before.values.keys() | after.values.keys()
    ]
    changed = [move for move in moves if not same_value(move.before, move.after)]
    return sorted(changed, key=lambda m: (-abs((m.after or 0.0) - (m.before or 0.0)), m.query_id))


def _names(before: Mapping[str, RunState], after: Mapping[str, RunState]) -> dict[str, str]:
    """Name now -> name before, of the runs in both; a file that is called otherwise now is the same run."""
    was = {name: name for name in after if name in before}
    absent = _by_digest(before, was)
    added = _by_digest(after, was)
    for digest, names in added.items():
        if len(names) == 1 and len(absent.get(digest, ())) == 1:
            was[names[0]] = absent[digest][0]
    return was


def _by_digest(runs: Mapping[str, RunState], known: Mapping[str, str]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name, run in runs.items():
        if name not in known:
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
