"""Files of a track that an output never replaces."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from trecexam.config import CONFIG_NAME, TrackConfig
from trecexam.errors import TrecexamError
from trecexam.folder import TrackFolder
from trecexam.inputs.track_graders import usable_folders


def refuse_protected(path: Path, *tracks: Path, runs: bool = False) -> None:
    """Refuse to write an output over a file of a track, or into its drop folder or store.

    Args:
        path: the output, there or not.
        tracks: tracks that may read the output from outside of their folders.
        runs: the output may go into the drop folder.

    Raises:
        TrecexamError: with what to do.
    """
    if role := _reserved(path, runs=runs):
        raise TrecexamError(f"{role}; name another file", path=path)
    inside = any((root / CONFIG_NAME).is_file() for name in _names(path) for root in name.parents)
    if path.is_file() and (inside or _identity(path) in set(map(_identity, _files(tracks)))):
        raise TrecexamError("is in a track, where no output replaces a file; name another file", path=path)


def _opened(root: Path) -> TrackFolder:
    """Open a track, with the default settings where its own cannot be read."""
    try:
        return TrackFolder.open(root)
    except TrecexamError:
        return TrackFolder(root, TrackConfig())


def refuse_folder(
    folder: Path, inputs: Iterable[Path | None], names: Iterable[str], *, always: Iterable[str] = ()
) -> None:
    """Refuse a folder for outputs that belongs to a track, or where a file of somebody else would be lost.

    Args:
        folder: there or not.
        inputs: what the command reads: files, folders and tracks.
        names: patterns of the files that the command replaces or removes in it.
        always: those that the command always writes, so that a folder of an earlier output has them all; ():
            other files of these names may be replaced.

    Raises:
        TrecexamError: with the reason and what to do.
    """
    is_out = any(name.name == "out" and (name.parent / CONFIG_NAME).is_file() for name in _names(folder))
    is_track = is_out or any((folder / name).is_file() for name in (CONFIG_NAME, "manifest.json"))
    if role := "is the folder of a track, or its out/" if is_track else _reserved(folder):
        raise TrecexamError(f"{role}; name another folder", path=folder)
    files = [path for pattern in names for path in folder.glob(pattern) if path.is_file()]
    if not files:
        return
    read = set(map(_identity, _files(path for path in inputs if path is not None)))
    for path in files:
        if _identity(path) in read:
            raise TrecexamError("is an input of this command; name another folder", path=path)
    if not all((folder / name).is_file() for name in always):
        raise TrecexamError("was not written by this command; name another folder", path=files[0])


def input_files(path: Path) -> Iterator[Path]:
    """Yield the files that a command reads where it is given this file, folder or track."""
    if (path / CONFIG_NAME).is_file():
        yield from path.iterdir()
        yield from _named(_opened(path))
    else:
        yield from path.rglob("*") if path.is_dir() else (path,)


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    return (file for path in paths for file in input_files(path))


def _named(folder: TrackFolder) -> Iterator[Path]:
    """Yield the runs and the files that a track's settings name: they may be elsewhere."""
    yield from folder.runs.rglob("*")
    for view in (folder, *usable_folders(folder).values()):
        finds = (view.queries, view.passages, view.qrels, view.official_leaderboard, view.recorded)
        for find in (*finds, view.prompt, view.metric):
            with suppress(TrecexamError):
                yield from filter(None, (find(),))
        with suppress(TrecexamError):
            yield from view.bank(optional=True)


def _reserved(path: Path, *, runs: bool = False) -> str:
    """Say which folder of a track a path is in that nothing is written into; "" where in none."""
    for name in _names(path):
        for root in name.parents:
            if (root / CONFIG_NAME).is_file():
                track = _opened(root)
                if name.is_relative_to(track.shared_state):
                    return "is among what the track stores, as its grades"
                if name.is_relative_to(track.runs) and not runs:
                    return "is in the drop folder, whose files are read as runs"
    return ""


def _identity(path: Path) -> tuple[int, int] | None:
    """Return which file it is, by whichever name; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _names(path: Path) -> set[Path]:
    """Return the path itself, as a link is replaced itself, and what it leads to."""
    # os.path gives an answer for links in a circle, too.
    return {Path(os.path.abspath(path)), Path(os.path.realpath(path))}  # noqa: PTH100
