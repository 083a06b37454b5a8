"""Files of a track that an output never replaces: inputs, people's ratings, settings, stored grades."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from trecexam.config import CONFIG_NAME, TrackConfig
from trecexam.errors import TrecexamError
from trecexam.folder import TrackFolder
from trecexam.line.sources import provenance_beside
from trecexam.line.track_graders import usable_folders

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
            role = _role(_opened(root), names, runs=runs)
            if role is not None:
                raise TrecexamError(f"{role}; name another file", path=path)


def _opened(root: Path) -> TrackFolder:
    """Open a track, with the default settings where its own cannot be read."""
    try:
        return TrackFolder.open(root)
    except TrecexamError:
        return TrackFolder(root, TrackConfig())


def refuse_folder(
    folder: Path, inputs: Iterable[Path | None], names: Iterable[str], *, always: Iterable[str] = ()
) -> None:
    """Refuses a folder for outputs that belongs to a track, or where a file of somebody else would be lost.

    Args:
        folder: there or not.
        inputs: what the command reads: files, folders and tracks.
        names: patterns of the files that the command replaces or removes in it.
        always: those that the command always writes, so that a folder of an earlier output has them all; ():
            other files of these names may be replaced.

    Raises:
        TrecexamError: with the reason and what to do.
    """
    around = _names(folder)
    for root in dict.fromkeys(parent for name in around for parent in (name, *name.parents)):
        if (root / CONFIG_NAME).is_file():
            role = _folder_role(_opened(root), around)
            if role is not None:
                raise TrecexamError(f"{role}; name another folder", path=folder)
    files = [path for pattern in names for path in folder.glob(pattern) if path.is_file()]
    if not files:
        return
    read = {_identity(path) for each in inputs if each is not None for path in input_files(each)}
    for path in files:
        if _identity(path) in read:
            raise TrecexamError("is an input of this command; name another folder", path=path)
    if not all((folder / name).is_file() for name in always):
        raise TrecexamError("was not written by this command; name another folder", path=files[0])


def _folder_role(track: TrackFolder, names: set[Path]) -> str | None:
    if names & _names(track.root):
        return "is the folder of a track"

    def inside(other: Path) -> bool:
        return any(name.is_relative_to(root) for name in names for root in _names(other))

    is_out = names & _names(track.shared_out)
    # That of one of several graders is below it.
    if is_out or (inside(track.shared_out) and any((name / "manifest.json").is_file() for name in names)):
        return "is in out/, which `trecexam watch` writes"
    if inside(track.runs):
        return "is in the drop folder, whose files are read as runs"
    if inside(track.shared_state):
        return "is among what the track stores, as its grades"
    return None


def input_files(path: Path) -> Iterator[Path]:
    """The files that a command reads where it is given this file, folder or track."""
    if not path.is_dir():
        yield path
    elif (path / CONFIG_NAME).is_file():
        track = _opened(path)
        yield from (file for file, _ in _files(track))
        yield from track.runs.rglob("*")
    else:
        yield from path.rglob("*")


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file it is, by whichever name; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


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
                    if role == "official judgments":
                        yield provenance_beside(found), "whose labels the official judgments are"
        with suppress(TrecexamError):
            for path in view.bank(optional=True):
                yield path, "test bank"
