"""Why a leaderboard moved, in words: one line for an entry of the history, a few words for a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trecexam.features.history.arithmetic import (
    BoardChange,
    Counting,
    Entry,
    FieldChange,
    ItemChange,
    OriginChange,
    RunChange,
)
from trecexam.features.history.arithmetic.leaderboard_snapshot import same_value
from trecexam.tables.terminal import printable
from trecexam.tables.text import counted, plural

OVERRIDES = "overrides.tsv"
_VALUE = 40


def cause(earlier: str, changed: OriginChange, board: BoardChange) -> str:
    """What was done to the track, in a line."""
    if earlier == "none":
        return "the first leaderboard"
    if earlier == "unknown":
        return "what was before could not be read: all runs are listed as new"
    # People's ratings are named by who gave them, not by their file. Where that is as it was, others count
    # because the pool is another.
    touched = OVERRIDES in {*changed.added, *changed.edited, *changed.removed}
    rated = touched and bool(changed.human or changed.withdrawn)
    parts = []
    for names, verb in ((changed.added, "added"), (changed.edited, "edited"), (changed.removed, "removed")):
        named = [name for name in names if not (rated and name == OVERRIDES)]
        if named:
            parts.append(f"{counted(named, 'file')} {verb}")
    parts += (f"{before} is called {after}" for before, after in changed.renamed)
    if items := items_of(board.items):
        parts.append(items)
    if rated:
        parts += (f"{plural(count, 'human label')} by {who}" for who, count in changed.human.items())
    if rated and changed.withdrawn:
        parts.append(f"{plural(changed.withdrawn, 'human label')} withdrawn")
    parts += (_field(change) for change in changed.settings)
    parts += (f"grader: {_field(change)}" for change in changed.grader)
    parts += (_field(change) for change in changed.versions)
    if board.reranked:
        parts.append(f"runs are ranked by {board.measures_after[0]}, no longer by {board.measures_before[0]}")
    return printable("; ".join(parts)) or "other grades, though no input changed"


def reason(row: RunChange, entry: Entry) -> str:
    """Why a run stands elsewhere, in a few words; "" for one that does not."""
    return reason_on(
        row, entry.board, otherwise="settings changed" if entry.changed.settings else "other ratings"
    )


def reason_on(row: RunChange, board: BoardChange, otherwise: str = "other ratings") -> str:
    """The same on any two boards; `otherwise` is said where neither runs nor labels nor items tell why."""
    if row.change != "moved":
        called = f"was called {row.was}" if row.was else ""
        return called if row.change == "same" else row.change
    parts = []
    if row.was:
        parts.append(f"was called {row.was}")
    if board.reranked:
        parts.append("another measure ranks the runs")
    if row.file_changed:
        parts.append("its file changed")
    if row.labels:
        parts.append(_labels(row.labels, f" of its first {board.depth}", board.counting))
    if row.beyond:
        parts.append(_labels(row.beyond, " of other passages", board.counting))
    if row.edited_queries:
        parts.append(f"items came or went in {plural(row.edited_queries, 'query')}")
    if row.reweighed_queries:
        parts.append(f"items weigh otherwise in {plural(row.reweighed_queries, 'query')}")
    if not parts:
        parts.append(_otherwise(row, board, otherwise))
    if row.rank_before != row.rank_after:
        if row.came_above:
            parts.append(f"{plural(row.came_above, 'new run')} above it")
        if row.went_above:
            parts.append(f"{plural(row.went_above, 'run')} above it gone")
        if row.passed_by and not row.n_queries:
            others = plural(abs(row.passed_by), "run")
            parts.append(f"{others} got past it" if row.passed_by > 0 else f"{others} fell below it")
    return "; ".join(parts)


def _labels(count: int, whose: str, counting: Counting) -> str:
    if counting.items:
        whose = whose if whose != " of other passages" else " that it lacks"
        return f"{plural(count, 'passage')}{whose} {'reaches' if count == 1 else 'reach'} other items"
    verb = "changed" if counting.rel is None else f"crossed {counting.rel}"
    return f"{plural(count, 'label')}{whose} {verb}"


def _otherwise(row: RunChange, board: BoardChange, otherwise: str) -> str:
    """What is left to say where neither the run's file, nor a label or item of its queries changed."""
    if same_value(*row.means[board.measures_after[0]]):
        return "its mean did not change"
    if any(move.before is None or move.after is None for move in row.queries):
        return "queries came or went"
    return otherwise


def items_of(items: Iterable[ItemChange]) -> str:
    """Items that were added, edited, removed, retired or reweighed, in which queries; "" where none was."""
    done = [item for item in items if item.change != "kept"]
    if not done:
        return ""
    kinds_there = ("edited", "added", "removed", "retired", "un-retired", "reweighed")
    counts = {kind: sum(item.change == kind for item in done) for kind in kinds_there}
    kinds = [f"{count:,} {kind}" for kind, count in counts.items() if count]
    what = f"({', '.join(kinds)})" if len(kinds) > 1 else done[0].change
    queries = list(dict.fromkeys(item.query_id for item in done))
    return f"{plural(len(done), 'item')} {what} in {counted(queries, 'query')}"


def _field(change: FieldChange) -> str:
    before, after = _shown(change.before), _shown(change.after)
    if before is None or after is None:
        return f"{change.name} changed"
    return f"{change.name} {before} -> {after}"


def _shown(value: Any) -> str | None:
    if value is None:
        return "unset"
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        value = ", ".join(value)
    elif isinstance(value, dict | list | tuple):
        return None
    text = " ".join(str(value).split())
    if len(text) == 64 and set(text) <= set("0123456789abcdef"):
        return text[:8]
    return text if len(text) <= _VALUE else None
