"""Files in out/ of all graders of a track that has several, and files that an earlier update left there.

A grader that waits for a bank or a model has no files: an update makes them again from stored grades, so no
data is lost. A grader that failed (damaged bank, wrong setting) keeps its files; the update, the report and
the manifest say that these files are of an earlier update.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from converters.errors import ConversionError
from trecexam.errors import LackingError, TrecexamError
from trecexam.features.leaderboard.board import track_leaderboard
from trecexam.files import atomic as files
from trecexam.files.kept import read_object
from trecexam.folder import TrackFolder
from trecexam.grades.diagnostics import all_rejected
from trecexam.grades.graded_track import GradedTrack, LoadedTrack
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.track_graders import usable_folders
from trecexam.outputs.grader_update import Update
from trecexam.outputs.history import HISTORY
from trecexam.outputs.outputs import REJECTED, Outputs, below_out, rejected_table, remove_outputs
from trecexam.outputs.report import PAGE, joint_report
from trecexam.results.table import to_tsv
from trecexam.scores.leaderboard import Leaderboard

#: Keys that are equal in the manifests of all graders.
_SHARED = ("inputs", "outputs", "versions", "config")


class JointOutputs:
    """Output files shared by all graders of a track.

    Args:
        hold: run files that are being written now.
        errors: grader -> reason why the grader cannot continue; updated before each call.
    """

    def __init__(
        self,
        loaders: OpenTrack,
        hold: Collection[Path],
        errors: Mapping[str, TrecexamError | ConversionError],
    ) -> None:
        self._loaders, self._hold, self._errors = loaders, hold, errors
        self._outputs = Outputs(loaders.folder)
        self._tracks: dict[str, GradedTrack] = {}

    def write_leaderboard(self, name: str, track: GradedTrack) -> None:
        """Write the leaderboard and the manifest after a grader wrote its outputs."""
        self._tracks[name] = track
        loaded = self._load()
        self._tracks.update(loaded.graded_tracks)
        self._put_leaderboard(track_leaderboard(loaded))
        self._put_manifest(loaded)

    def write(self, update: Update, doing: Callable[[str], None], *, stopped: bool) -> Update:
        """Write all shared files after the graders' updates, the manifest last; return the completed update.

        Args:
            update: the update of all graders.
            doing: called before the files are written.
            stopped: True leaves the report unchanged.
        """
        folder, outputs = self._loaders.folder, self._outputs
        seen = json.dumps([[*self._loaders], {name: str(error) for name, error in self._errors.items()}])
        update = replace(update, changed=update.changed or outputs.last(seen) is None)
        if not update.changed or (stopped and not update.graders):
            return update
        doing("what is of all graders")
        outputs.clear()
        track = self._load()
        board = track_leaderboard(track)
        removed = _remove_waiting(folder, track.unable)
        by_grader = {name: of.rejected for name, of in update.graders.items()}
        table = rejected_table(all_rejected(track, by_grader))
        self._put_leaderboard(board)
        outputs.put(REJECTED, to_tsv(table).encode())
        if not folder.whole.report.write:
            files.remove(folder.shared_out / PAGE)
        elif not stopped:
            outputs.put(PAGE, joint_report(track, board, table, stale_files(folder, track.unable)))
        self._put_manifest(track)
        if not stopped:
            outputs.remember(seen)
        written = dict.fromkeys((*update.written, *outputs.changed))
        return replace(update, written=tuple(written), notes=(*update.notes, *removed))

    def _load(self) -> LoadedTrack:
        """Load the current track; reuse loaded tracks of graders that this update covered."""
        return self._loaders.load(self._hold, updated=self._tracks, unable=self._errors)

    def _put_leaderboard(self, board: Leaderboard) -> None:
        self._outputs.put("leaderboard.tsv", board)
        self._outputs.put("leaderboard.json", board)

    def _put_manifest(self, track: LoadedTrack) -> None:
        """Write the manifest of the current files in out/, from each grader's latest manifest."""
        out, names = track.folder.shared_out, tuple(self._loaders)
        stale = stale_files(track.folder, track.unable)
        folders = usable_folders(track.folder)
        manifests: dict[str, dict[str, Any]] = {name: {} for name in names}
        manifests |= {name: read_object(folder.manifest_path) for name, folder in folders.items()}
        # The report and rejected.tsv are written after the last grader.
        earlier = read_object(track.folder.manifest_path).get("outputs", {})
        outputs = dict(self._outputs.hashes)
        for name in (REJECTED, PAGE):
            if name in earlier and (out / name).exists():
                outputs.setdefault(name, earlier[name])
        for name, folder in folders.items():
            for output, digest in manifests[name].get("outputs", {}).items():
                outputs[folder.output(output).relative_to(out).as_posix()] = digest
        graders = {
            name: {
                "kind": each.kind.name if (each := track.graded_tracks.get(name)) else None,
                "files": "out/" if name == names[0] else f"out/{name}/",
                **{key: value for key, value in manifests[name].items() if key not in _SHARED},
                "config": manifests[name].get("config"),
                **({"unable": str(track.unable[name])} if name in track.unable else {}),
                **({"stale": stale[name]} if name in stale else {}),
            }
            for name in names
        }
        manifest = {
            "complete": not track.unable and all(each.get("complete") for each in manifests.values()),
            "graders": graders,
            "inputs": {
                file: digest for each in manifests.values() for file, digest in each.get("inputs", {}).items()
            },
            "outputs": outputs,
            "versions": next((each["versions"] for each in manifests.values() if "versions" in each), {}),
        }
        # A grader with wrong settings keeps its files.
        self._outputs.put_manifest(manifest, remove=len(folders) == len(names))


def _remove_waiting(folder: TrackFolder, unable: Mapping[str, Exception]) -> list[str]:
    """Remove outputs of graders that wait for a bank or a model; return a line per grader with outputs.

    Args:
        unable: grader -> reason why the grader cannot continue.
    """
    removed = []
    for name, grader_folder in usable_folders(folder).items():
        if isinstance(unable.get(name), LackingError) and grader_folder.manifest_path.exists():
            outputs = below_out(read_object(grader_folder.manifest_path).get("outputs"))
            paths = (*map(grader_folder.output, outputs), grader_folder.manifest_path)
            remove_outputs(folder.shared_out, paths)
            removed.append(
                f"{name}: removed its files of an earlier update from {_shown(grader_folder)}; when it can "
                "go on they are made again, from the stored grades"
            )
    return removed


def stale_files(folder: TrackFolder, unable: Mapping[str, Exception]) -> dict[str, str]:
    """Return grader -> a sentence that the grader failed and has files of an earlier update.

    Args:
        unable: grader -> reason why the grader cannot continue.
    """
    return {
        name: f"its files in {_shown(grader_folder)} are of an earlier update"
        for name, grader_folder in usable_folders(folder).items()
        if name in unable
        and not isinstance(unable[name], LackingError)
        and grader_folder.manifest_path.exists()
    }


def move_histories(folder: TrackFolder, names: Sequence[str]) -> None:
    """Move the former first grader's history into its folder, and the new first grader's out of its folder.

    A history cannot be made again. After an interruption, the next update completes the move.

    Args:
        names: names of the track's graders.
    """
    out = folder.shared_out
    before = next(below_out(read_object(out / "manifest.json").get("graders")), names[0])
    if before != names[0]:
        for source, target in (
            (out / HISTORY, out / before / HISTORY),
            (out / names[0] / HISTORY, out / HISTORY),
        ):
            if source.exists() and not target.exists():
                files.make_folder(target.parent)
                source.rename(target)


def _shown(folder: TrackFolder) -> str:
    """Return the display path of a grader's files."""
    return f"out/{folder.place}/" if folder.place else "out/"
