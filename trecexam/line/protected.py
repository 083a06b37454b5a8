"""Files of a track that an output never replaces: inputs, people's ratings, settings, stored grades."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from trecexam.config import CONFIG_NAME
from trecexam.errors import TrecexamError
from trecexam.line.track_graders import usable_folders
from trecexam.track import TrackFolder, as_far_as_readable

#: The files of people, by pattern.
_OF_PEOPLE = {
    "overrides*.tsv": "people's ratings",
    "judgments.tsv": "people's judgments",
    "judging.tsv": "judging plan",
}


def refuse_protected(path: Path, *tracks: Path, runs: bool = False) -> None:
    """Refuses an output that would replace what a track is made of, or what it stores.

    Args:
        path: the output, there or not.
        tracks: folders of tracks to look at besides those that the path is in.
        runs: the output may go into the drop folder.

    Raises:
        TrecexamError: with the file's role and what to do.
    """
    names = _names(path)
    around = (root for name in names for root in name.parents)
    for root in dict.fromkeys((*tracks, *around)):
        if (root / CONFIG_NAME).is_file():
            role = _role(as_far_as_readable(root), names, runs=runs)
            if role is not None:
                raise TrecexamError(f"{role}; name another file", path=path)


def _role(folder: TrackFolder, names: set[Path], *, runs: bool) -> str | None:
    def inside(other: Path) -> bool:
        return any(name.is_relative_to(root) for name in names for root in _names(other))

    if inside(folder.shared_state):
        return "is among what the track stores, as its grades"
    if inside(folder.runs) and not runs:
        return "is in the drop folder, and would be read as a run"
    if inside(folder.shared_out) and any(name.exists() for name in names):
        return "is in out/, which `trecexam watch` writes"
    for file, role in _files(folder):
        if names & _names(file):
            return f"is one of the track's own files ({role})"
    return None


def _names(path: Path) -> set[Path]:
    """The path itself, as a link is replaced itself, and what it leads to."""
    # os.path gives an answer for links in a circle, too.
    return {Path(os.path.abspath(path)), Path(os.path.realpath(path))}  # noqa: PTH100


def _files(folder: TrackFolder) -> Iterator[tuple[Path, str]]:
    """The files that the track is made of, each with its role."""
    yield folder.config_path, "settings"
    for pattern, role in _OF_PEOPLE.items():
        for path in folder.root.glob(pattern):
            yield path, role
    views = [folder]
    with suppress(TrecexamError):
        views = list(usable_folders(folder).values()) or views
    for view in views:
        for find, role in (
            (view.queries, "queries"),
            (view.passages, "passages"),
            (view.qrels, "official judgments"),
            (view.official_leaderboard, "official leaderboard"),
            (view.recorded, "recorded grades"),
            (view.prompt, "prompt"),
            (view.metric, "metric"),
        ):
            with suppress(TrecexamError):
                found = find()
                if found is not None:
                    yield found, role
        with suppress(TrecexamError):
            for path in view.bank(optional=True):
                yield path, "test bank"
