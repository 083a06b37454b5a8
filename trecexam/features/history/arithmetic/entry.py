"""An entry of a track's history: what changed in what a leaderboard is made from, and what moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from trecexam.features.history.arithmetic.board import BoardChange

Earlier = Literal["none", "known", "unknown"]


class HumanLabel(NamedTuple):
    """A person's rating of a cell, or of a passage as a whole (`item_id` "")."""

    query_id: str
    doc_id: str
    item_id: str
    rating: int
    who: str


@dataclass(frozen=True)
class SnapshotOrigin:
    """What a leaderboard is made from.

    Attributes:
        inputs: file -> sha256 (hex); "" where it is there and its content cannot matter.
        settings: "[section] key" -> value.
        grader: the grader's identity.
        versions: package -> version.
        human: what people said in the grader's place, sorted.
    """

    inputs: Mapping[str, str]
    settings: Mapping[str, Any]
    grader: Mapping[str, Any]
    versions: Mapping[str, str | None]
    human: tuple[HumanLabel, ...] = ()


@dataclass(frozen=True)
class FieldChange:
    """A setting, or a part of a grader's identity, before and after; None where it is not there."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True)
class OriginChange:
    """What changed in what a leaderboard is made from.

    Attributes:
        added, edited, removed: files, sorted.
        renamed: (name before, name now) of files with the same content.
        human: who -> cells and passages that they rated anew, or otherwise than before.
        withdrawn: human ratings that no longer count.
    """

    added: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    settings: tuple[FieldChange, ...] = ()
    grader: tuple[FieldChange, ...] = ()
    versions: tuple[FieldChange, ...] = ()
    human: Mapping[str, int] = field(default_factory=dict)
    withdrawn: int = 0


@dataclass(frozen=True)
class Entry:
    """What one update changed.

    Attributes:
        entry: its number, from 1.
        when: UTC, ISO 8601, to the second.
        earlier: "none" for the first leaderboard; "known"; or "unknown", where what was before could not be
            read: then every run is listed as new, and no label.
        cause: one line for people.
        changed: what the cause says, in full.
        board: what moved.
        before, after: sha256 (hex) of the two leaderboards with their labels; `before` is None unless
            `earlier` is "known".
    """

    entry: int
    when: str
    earlier: Earlier
    cause: str
    changed: OriginChange
    board: BoardChange
    before: str | None
    after: str


def origin_change(before: SnapshotOrigin, after: SnapshotOrigin) -> OriginChange:
    """What changed from one to the other."""
    added = sorted(name for name in after.inputs.keys() - before.inputs.keys() if after.inputs[name])
    removed = sorted(name for name in before.inputs.keys() - after.inputs.keys() if before.inputs[name])
    edited = sorted(
        name
        for name in before.inputs.keys() & after.inputs.keys()
        if before.inputs[name] and after.inputs[name] and before.inputs[name] != after.inputs[name]
    )
    renamed = []
    for name in removed:
        same = next((other for other in added if after.inputs[other] == before.inputs[name]), None)
        if same is not None:
            renamed.append((name, same))
            added.remove(same)
    old = {row[:3]: row for row in before.human}
    new = {row[:3]: row for row in after.human}
    return OriginChange(
        tuple(added),
        tuple(edited),
        tuple(name for name in removed if name not in dict(renamed)),
        tuple(renamed),
        _fields(before.settings, after.settings),
        _fields(before.grader, after.grader),
        _fields(before.versions, after.versions),
        dict(sorted(Counter(row.who for key, row in new.items() if old.get(key) != row).items())),
        len(old.keys() - new.keys()),
    )


def _fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[FieldChange, ...]:
    return tuple(
        FieldChange(name, before.get(name), after.get(name))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    )
