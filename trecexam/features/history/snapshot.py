"""Gathers where a track's leaderboard stands, and what it is made from, for the history."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from trecexam.bank.model import item_digest
from trecexam.config import CONFIG_NAME
from trecexam.features.history.changes import ItemKey, LeaderboardSnapshot, QuerySnapshot, RunSnapshot
from trecexam.graders.base import identity_json
from trecexam.line.evaluation import leaderboard
from trecexam.line.versions import versions
from trecexam.scores.labels import labels
from trecexam.tables.terminal import printable
from trecexam.tables.text import counted

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment


#: Settings that can change no answer and no score.
_IDLE = (
    "[grader] device",
    "[grader] dtype",
    "[grader] max_batch_tokens",
)


def snapshot_of(track: Assessment) -> LeaderboardSnapshot:
    """Where the runs stand, with the labels and items that they stand on.

    Names that cannot be written as UTF-8 are escaped, as in the outputs.
    """
    display_name = track.folder.shown
    board = leaderboard(track)
    runs = {
        printable(row.run): RunSnapshot(
            track.digests.get(display_name(track.run_files[row.run]), ""),
            tuple(finite(score.mean) for score in row.scores),
        )
        for row in board.rows
    }
    return LeaderboardSnapshot(board.measures, runs, query_states(track))


def query_states(track: Assessment) -> Mapping[str, QuerySnapshot]:
    """query_id -> its items, and the labels and items of its passages."""
    return track.derived("query states", ("cells", "settings"), lambda: _query_states(track))


def _query_states(track: Assessment) -> dict[str, QuerySnapshot]:
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


def origin_of(track: Assessment) -> tuple[dict[str, str], dict[str, Any]]:
    """What can move the leaderboard: file -> sha256 (hex), "" where its content cannot matter; and the name
    of a setting, of a part of the grader's identity, or of a package -> its value.

    No files that were rejected, and the official judgments only where their passages are pooled.
    """
    folder, qrels = track.folder, track.folder.qrels()
    other_paths = (folder.config_path, qrels, folder.official_leaderboard(), *folder.run_files())
    idle = {folder.shown(path) for path in other_paths if path is not None} | {CONFIG_NAME}
    idle -= {folder.shown(path) for path in track.run_files.values()}
    files = {printable(name): digest for name, digest in track.digests.items() if name not in idle}
    if qrels is not None:
        qrels_name = folder.shown(qrels)
        files[printable(qrels_name)] = (
            track.digests.get(qrels_name, "") if track.config.track.pool_judged else ""
        )
    config = track.config.model_dump(mode="json", exclude={"watch", "report", "generator", "cells"})
    values = {f"[{name}] {key}": value for name, section in config.items() for key, value in section.items()}
    values = {name: value for name, value in values.items() if name not in _IDLE}
    identity = json.loads(identity_json(track.grader.identity))
    values |= {f"grader: {name}": value for name, value in identity.items()}
    return files, values | versions()


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


#: Characters of a value that a cause shows; of a longer one only its name.
_VALUE = 40


def changed_files(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """What was done -> files, sorted; only what was done to some.

    Args:
        before, after: file -> sha256; "" where its content cannot matter.
    """
    added = {name: digest for name, digest in sorted(after.items()) if digest and name not in before}
    removed = {name: digest for name, digest in sorted(before.items()) if digest and name not in after}
    renamed = []
    for name, digest in list(removed.items()):
        same = next((other for other in added if added[other] == digest), None)
        if same is not None:
            renamed.append(f"{name} -> {same}")
            del removed[name], added[same]
    edited = [
        name
        for name in sorted(before.keys() & after.keys())
        if before[name] and after[name] and before[name] != after[name]
    ]
    done = {"added": added, "edited": edited, "removed": removed, "renamed": renamed}
    return {what: tuple(names) for what, names in done.items() if names}


def changed_values(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Name -> (before, after) of what differs; None where it is not there."""
    return {
        name: (before.get(name), after.get(name))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    }


def cause(files: Mapping[str, tuple[str, ...]], values: Mapping[str, tuple[Any, Any]]) -> str:
    """What was done to the track, in a line."""
    parts = [f"{counted(names, 'file')} {what}" for what, names in files.items()]
    for name, pair in values.items():
        before, after = map(_shown, pair)
        parts.append(f"{name} changed" if before is None or after is None else f"{name} {before} -> {after}")
    return printable("; ".join(parts)) or "other grades, though no input changed"


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
