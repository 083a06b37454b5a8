"""Files that an earlier update left in out/, and that are no grader's now, or not what it says now.

A grader that waits for a bank or a model has no files: they can be made again from stored grades, so no data
is lost. One that failed (a damaged bank, a wrong setting) keeps its files, as the one grader of a track does;
the update, the report and the manifest say that they are of an earlier update.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from trecexam.errors import LackingError
from trecexam.files import atomic as files
from trecexam.files.kept import read_object
from trecexam.folder import TrackFolder
from trecexam.inputs.track_graders import usable_folders
from trecexam.outputs.history import HISTORY


def remove_gone(folder: TrackFolder, earlier: Mapping[str, Any], manifest: Mapping[str, Any]) -> None:
    """Remove the outputs that an earlier manifest names and the present one does not.

    Args:
        folder: that both are of.
    """
    graders = [name for name in _safe(earlier.get("graders")) if name not in manifest.get("graders", ())]
    names = (*_safe(earlier.get("outputs")), *_safe(f"{name}/manifest.json" for name in graders))
    _remove(folder.shared_out, (folder.output(name) for name in names if name not in manifest["outputs"]))


def remove_waiting(folder: TrackFolder, unable: Mapping[str, Exception]) -> list[str]:
    """Remove outputs of graders that wait for a bank or a model; return a line for each that had some.

    Args:
        unable: name -> why a grader cannot go on.
    """
    removed = []
    for name, grader_folder in usable_folders(folder).items():
        if isinstance(unable.get(name), LackingError) and grader_folder.manifest_path.exists():
            outputs = _safe(read_object(grader_folder.manifest_path).get("outputs"))
            paths = (*map(grader_folder.output, outputs), grader_folder.manifest_path)
            _remove(folder.shared_out, paths)
            removed.append(
                f"{name}: removed its files of an earlier update from {_shown(grader_folder)}; when it can "
                "go on they are made again, from the stored grades"
            )
    return removed


def stale_files(folder: TrackFolder, unable: Mapping[str, Exception]) -> dict[str, str]:
    """Return name -> that a grader failed and has files of an earlier update.

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


def move_histories(folder: TrackFolder, names: Sequence[str]) -> None:
    """Move the history of the former first grader into its folder, and that of the first grader out of its.

    A history cannot be made again. The next update, which begins with this, does the steps that are not done.

    Args:
        names: of the graders that the track has.
    """
    out = folder.shared_out
    before = next(_safe(read_object(out / "manifest.json").get("graders")), names[0])
    if before != names[0]:
        for source, target in (
            (out / HISTORY, out / before / HISTORY),
            (out / names[0] / HISTORY, out / HISTORY),
        ):
            if source.exists() and not target.exists():
                files.make_folder(target.parent)
                source.rename(target)


def _safe(names: object) -> Iterator[str]:
    """Yield the names, from a manifest, of what is below out/."""
    names = names if isinstance(names, Iterable) else ()
    return (name for name in map(str, names) if not name.startswith("/") and ".." not in name)


def _remove(out: Path, paths: Iterable[Path]) -> None:
    """Remove files of out/, and the folders in it that are empty then; what somebody put there stays."""
    folders = set()
    for path in paths:
        files.remove(path)
        folders |= {folder for folder in path.parents if folder != out and folder.is_relative_to(out)}
    for folder in sorted(folders, reverse=True):
        with suppress(OSError):
            folder.rmdir()


def _shown(folder: TrackFolder) -> str:
    """Return where the files of a grader are."""
    return f"out/{folder.place}/" if folder.place else "out/"
