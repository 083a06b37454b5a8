"""What was done to a track between two leaderboards: which files and settings changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trecexam.tables.terminal import printable
from trecexam.tables.text import counted

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
