"""A store that is gone, or an older one: what was graded once, and paid for, is not graded again unasked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trecexam.errors import StoreError, quoted
from trecexam.files.kept import read_object, recall
from trecexam.folder import TrackFolder
from trecexam.graders.base import Grader, identity_digest, identity_json
from trecexam.line.loader import TrackLoader


def refuse_lost_grades(loader: TrackLoader) -> None:
    """To be called before grading, on the store unchanged.

    Raises:
        StoreError: cells that graders that cost had graded have no grade any more.
    """
    loader.track.close_lost_store()
    lost = lost_grades(loader)
    if lost:
        how = "gone" if loader.store.is_empty() else "an older one"
        raise StoreError(
            f"the store is {how}, and the {lost:,} cells that were graded once would be graded "
            f"again, which costs: put it back, or `trecexam watch {quoted(loader.folder.root)} --once "
            "--regrade`",
            path=loader.folder.store_path,
        )


def lost_grades(loader: TrackLoader) -> int:
    """How many cells graders that cost had graded and the store has lost.

    Of an empty store that is by what is in `out/`, of others by how many it had after the last update.
    """
    graders, folder = _metered(loader), loader.folder
    if graders and loader.store.is_empty():
        return sum(_counted(folder, grader.identity) for grader in graders)
    stored = stored_grades(loader).items()
    return sum(max(0, _remembered(folder, digest) - count) for digest, count in stored)


def stored_grades(loader: TrackLoader) -> dict[str, int]:
    """The digest of each grader that costs -> how many of its grades the store has."""
    digests = [identity_digest(grader.identity) for grader in _metered(loader)]
    rows = {digest.hex(): loader.store.grader_id(digest) for digest in digests}
    return {digest: 0 if row is None else loader.store.count(row) for digest, row in rows.items()}


def _metered(loader: TrackLoader) -> list[Grader]:
    """The grader, where it costs."""
    return [loader.grader] if loader.grader.meter is not None else []


def _counted(folder: TrackFolder, identity: Mapping[str, Any]) -> int:
    """How many cells of the grader with this identity had a grade in `out/`."""
    manifest = read_object(folder.manifest_path)
    try:
        counts = manifest["counts"]
        graded = sum(counts[status] for status in ("ok", "unparsed", "refused", "error"))
        return graded if identity_json(manifest["grader"]) == identity_json(identity) else 0
    except (ValueError, KeyError, TypeError):
        return 0


def _remembered(folder: TrackFolder, grader: str) -> int:
    """How many grades of the grader with this digest the store had after the last complete update."""
    stored = recall(folder.last_update_path).get(folder.grader or "", {}).get("stored", ())
    return int(dict(zip(stored[::2], stored[1::2], strict=True)).get(grader, 0))
