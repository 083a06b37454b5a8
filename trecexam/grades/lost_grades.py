"""A store that is gone, or an older one: what was graded once, and paid for, is not graded again unasked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trecexam.errors import StoreError, quoted
from trecexam.files.kept import read_object, recall
from trecexam.folder import TrackFolder
from trecexam.graders.base import identity_digest, identity_json
from trecexam.grades.open_track import GraderView


def refuse_lost_grades(loader: GraderView) -> None:
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


def lost_grades(loader: GraderView) -> int:
    """Return how many cells a grader that costs had graded and the store has lost.

    Of an empty store that is by what is in `out/`, of others by how many it had after the last update.
    """
    if loader.grader.meter is None:
        return 0
    if loader.store.is_empty():
        return _counted(loader.folder, loader.grader.identity)
    return sum(
        max(0, _remembered(loader.folder, digest) - count) for digest, count in stored_grades(loader).items()
    )


def stored_grades(loader: GraderView) -> dict[str, int]:
    """Return how many grades the store has, by the digest of the grader; {} of a grader without costs."""
    if loader.grader.meter is None:
        return {}
    digest = identity_digest(loader.grader.identity)
    row = loader.store.grader_id(digest)
    return {digest.hex(): 0 if row is None else loader.store.count(row)}


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
