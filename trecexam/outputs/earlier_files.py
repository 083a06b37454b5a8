"""Files that an earlier update left in out/, and that are no grader's now, or not what it says now.

A grader that waits for a bank or a model has no files: they can be made again from stored grades, so no data
is lost. One that failed (a damaged bank, a wrong setting) keeps its files, as the one grader of a track does;
the update, the report and the manifest say that they are of an earlier update.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from trecexam.errors import LackingError
from trecexam.files import atomic as files
from trecexam.files.kept import read_object
from trecexam.folder import OF_ALL, TrackFolder
from trecexam.line.track_graders import usable_folders
from trecexam.outputs.history import HISTORY

_MANIFEST = "manifest.json"
_NAME = re.compile(r"[\w-]+")


def remove_gone(folder: TrackFolder, names: Sequence[str]) -> None:
    """Removes outputs of graders that the track has no more, and those whose place is another one now.

    Histories, which cannot be made again, stay: each goes where its grader's files are now.

    Args:
        names: of the graders that it has.
    """
    out = folder.shared_out
    manifest = read_object(out / _MANIFEST)
    before = manifest.get("graders")
    if not isinstance(before, dict):
        if len(names) > 1:
            # The one grader that there was had all files in out/; what is of all graders is written again.
            _remove(out, (out / name for name in _outputs(manifest) if name not in OF_ALL))
        return
    if before:
        _move_histories(out, next(iter(before)), names[0])
    usable = usable_folders(folder)
    for index, name in enumerate(before):
        # One whose settings cannot be used has failed.
        if (name in names and name not in usable) or not _NAME.fullmatch(name):
            continue
        now, grader_out = usable.get(name), out / name
        outputs = (*_outputs(read_object(grader_out / _MANIFEST)), _MANIFEST)
        paths = {each: (out if index == 0 and each not in OF_ALL else grader_out) / each for each in outputs}
        _remove(out, (path for each, path in paths.items() if now is None or now.output(each) != path))


def remove_waiting(folder: TrackFolder, unable: Mapping[str, Exception]) -> list[str]:
    """Removes outputs of graders that wait for a bank or a model; a line for each that had some.

    Args:
        unable: name -> why a grader cannot go on.
    """
    removed = []
    for name, grader_folder in usable_folders(folder).items():
        if isinstance(unable.get(name), LackingError) and grader_folder.manifest_path.exists():
            outputs = (*_outputs(read_object(grader_folder.manifest_path)), _MANIFEST)
            _remove(folder.shared_out, map(grader_folder.output, outputs))
            removed.append(
                f"{name}: removed its files of an earlier update from {_shown(grader_folder)}; when it can "
                "go on they are made again, from the stored grades"
            )
    return removed


def stale_files(folder: TrackFolder, unable: Mapping[str, Exception]) -> dict[str, str]:
    """Name -> that a grader failed and has files of an earlier update.

    Args:
        unable: name -> why a grader cannot go on.
    """
    return {
        name: f"its files in {_shown(grader_folder)} are of an earlier update"
        for name, grader_folder in usable_folders(folder).items()
        if name in unable
        and not isinstance(unable[name], LackingError)
        and grader_folder.manifest_path.exists()
    }


def _outputs(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """The outputs that a manifest names, as far as they are in its folder."""
    outputs = manifest.get("outputs")
    names = outputs if isinstance(outputs, dict) else {}
    return tuple(name for name in names if not name.startswith("/") and ".." not in name)


def _remove(out: Path, paths: Iterable[Path]) -> None:
    """Removes files of out/, and the folders in it that are empty then; what somebody put there stays."""
    folders = set()
    for path in paths:
        files.remove(path)
        folders |= {folder for folder in path.parents if folder != out and folder.is_relative_to(out)}
    for folder in sorted(folders, reverse=True):
        with suppress(OSError):
            folder.rmdir()


def _shown(folder: TrackFolder) -> str:
    """Where the files of a grader are."""
    return f"out/{folder.place}/" if folder.place else "out/"


def _move_histories(out: Path, first_before: str, first: str) -> None:
    """Move the history of the former first grader into its folder, and that of the first grader out of its.

    The next update, which begins with this, does the steps that are not done.
    """
    if first_before == first:
        return
    for source, target in (
        (out / HISTORY, out / first_before / HISTORY),
        (out / first / HISTORY, out / HISTORY),
    ):
        if source.exists() and not target.exists():
            files.make_folder(target.parent)
            source.rename(target)
