"""Files in out/ of all graders of a track that has several: leaderboard, report, rejected, the manifest."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from converters.errors import ConversionError
from trecexam.errors import TrecexamError
from trecexam.features.leaderboard.joint import track_leaderboard
from trecexam.files import atomic as files
from trecexam.files.kept import read_object
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.loaded_track import LoadedTrack
from trecexam.grades.open_track import OpenTrack
from trecexam.grades.rejected import all_rejected
from trecexam.inputs.track_graders import usable_folders
from trecexam.outputs.earlier_files import remove_waiting, stale_files
from trecexam.outputs.outputs import REJECTED, Outputs, rejected_table
from trecexam.outputs.report import PAGE, joint_report
from trecexam.outputs.updates import Update
from trecexam.results.table import to_tsv
from trecexam.scores.leaderboard import Leaderboard

#: What each grader's manifest has that is the same in all.
_SHARED = ("inputs", "outputs", "versions", "config")


class JointOutputs:
    """The outputs of a track that are of all its graders; those of one grader are its own.

    Args:
        hold: run files that are being written now.
        errors: why graders cannot go on, as it is known at each call.
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
        self._made: tuple[LoadedTrack, Leaderboard] | None = None

    def write_leaderboard(self, name: str, track: GradedTrack) -> None:
        """Write the leaderboard, and the manifest, after a grader's outputs were written."""
        self._tracks[name] = track
        loaded, board = self._leaderboard()
        self._tracks.update(loaded.graded_tracks)
        self._put_leaderboard(board)
        self._put_manifest(loaded, stale_files(loaded.folder, loaded.unable))

    def write(self, update: Update, doing: Callable[[str], None], *, stopped: bool) -> Update:
        """Write all of them after the graders' updates, the manifest last; return the update with them.

        Args:
            update: of all graders.
            doing: called before they are written.
            stopped: the report is left unchanged.
        """
        folder, outputs = self._loaders.folder, self._outputs
        seen = json.dumps([[*self._loaders], {name: str(error) for name, error in self._errors.items()}])
        update = replace(update, changed=update.changed or outputs.last(seen) is None)
        if not update.changed or (stopped and not update.graders):
            return update
        doing("what is of all graders")
        outputs.clear()
        track, board = self._leaderboard()
        removed = remove_waiting(folder, track.unable)
        stale = stale_files(folder, track.unable)
        rejected = all_rejected(track, {name: each.rejected for name, each in update.graders.items()})
        table = rejected_table(rejected)
        self._put_leaderboard(board)
        outputs.put(REJECTED, to_tsv(table).encode())
        if not folder.whole.report.write:
            files.remove(folder.shared_out / PAGE)
        elif not stopped:
            outputs.put(PAGE, joint_report(track, board, table, stale))
        self._put_manifest(track, stale)
        if not stopped:
            outputs.remember(seen)
        written = dict.fromkeys((*update.written, *outputs.changed))
        return replace(update, written=tuple(written), notes=(*update.notes, *removed))

    def _leaderboard(self) -> tuple[LoadedTrack, Leaderboard]:
        """Return the track as it is now, and the leaderboard of all graders, made once for the same track."""
        track = self._loaders.load(self._hold, updated=self._tracks, unable=self._errors)
        state = track.graded_tracks, track.unable
        if self._made is None or (self._made[0].graded_tracks, self._made[0].unable) != state:
            self._made = track, track_leaderboard(track)
        return self._made

    def _put_leaderboard(self, board: Leaderboard) -> None:
        self._outputs.put("leaderboard.tsv", board)
        self._outputs.put("leaderboard.json", board)

    def _put_manifest(self, track: LoadedTrack, stale: Mapping[str, str]) -> None:
        """Write the manifest, of what is in out/ now: each grader's own is what it wrote last."""
        out, names = track.folder.shared_out, tuple(self._loaders)
        folders = usable_folders(track.folder)
        manifests: dict[str, dict[str, Any]] = {name: {} for name in names}
        manifests |= {name: read_object(folder.manifest_path) for name, folder in folders.items()}
        # The report and what was rejected are written when all graders are at their end.
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
