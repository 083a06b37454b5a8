"""Inputs and the digests of the very contents that were read, though files may be replaced meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from trecexam.line.inputs import InputReader
from trecexam.line.track_inputs import TrackInputs

#: How often inputs are read where some are replaced meanwhile.
_READINGS = 3


def steady_inputs(
    reader: InputReader, hold: Collection[Path], bank_files: Sequence[Path] | None
) -> tuple[TrackInputs, Mapping[str, str]]:
    """The inputs, and file -> sha256 (hex) of what was read of it.

    Raises:
        TrecexamError, ConversionError: see `InputReader.read`.
    """
    changed: set[Path] = set()
    for _ in range(_READINGS):
        before = reader.stamps(bank_files)
        inputs, digests = reader.read(hold, bank_files), reader.digests(hold, bank_files)
        after = reader.stamps(bank_files)
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        changed -= set(hold)
        if not changed:
            break
    # Of a file that is replaced again and again none of its contents is known: the next update reads it.
    unknown = {reader.folder.shown(path): f"changed while it was read, {uuid4()}" for path in changed}
    return inputs, {**digests, **unknown}
