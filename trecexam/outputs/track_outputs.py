"""Files in out/ of all graders of a track: leaderboard, report, what was rejected, the manifest."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from converters.errors import ConversionError
from trecexam.errors import TrecexamError
from trecexam.features.leaderboard.joint import track_leaderboard
from trecexam.features.leaderboard.outputs import leaderboard_files
from trecexam.files import atomic as files
from trecexam.files.kept import read_object
from trecexam.files.stamps import Rejected
from trecexam.folder import OF_ALL
from trecexam.line.assessment import Assessment
from trecexam.line.loaded_track import LoadedTrack
from trecexam.line.loader import TrackLoaders
from trecexam.line.rejected import all_rejected
from trecexam.line.track_graders import usable_folders
from trecexam.outputs.earlier_files import remove_waiting, stale_files
from trecexam.outputs.last_update import LastUpdate
from trecexam.outputs.outputs import MANIFEST, PAGE, REJECTED
from trecexam.outputs.report.joint import joint_page
from trecexam.outputs.updates import Update
from trecexam.tables.table import Table, to_json, to_tsv

#: What each grader's manifest has that is the same in all.
_SHARED = ("inputs", "outputs", "versions", "config")


class TrackOutputs:
    """The outputs of a track that are of all its graders; those of one grader are its own.

    Args:
        hold: run files that are being written now.
        errors: why graders cannot go on, as it is known at each call.
    """

    def __init__(
        self,
        loaders: TrackLoaders,
        hold: Collection[Path],
        errors: Mapping[str, TrecexamError | ConversionError],
    ) -> None:
        self._loaders, self._hold, self._errors = loaders, hold, errors
        self._tracks: dict[str, Assessment] = {}
        self.folder = loaders.folder
        self._names = tuple(loaders)
        self._folders = usable_folders(loaders.folder)
        self._last = LastUpdate(
            self.folder.last_update_path,
            "",
            lambda: {name: self.folder.shared_out / name for name in OF_ALL},
        )

    def write_leaderboard(self, name: str, track: Assessment) -> None:
        """Write the leaderboard, and the manifest, after a grader's outputs were written.

        Raises:
            TrecexamError: a file cannot be written.
        """
        if len(self._names) == 1:
            return
        self._tracks[name] = track
        loaded = self._loaders.load(self._hold, updated=self._tracks, unable=self._errors)
        self._tracks.update(loaded.assessments)
        contents = leaderboard_files(track_leaderboard(loaded))
        self._put(contents)
        self._put_manifest(loaded, contents)

    def write(self, update: Update, doing: Callable[[str], None], *, stopped: bool) -> Update:
        """Write all of them after the graders' updates, the manifest last; return the update with them.

        Args:
            update: of all graders.
            doing: called before they are written.
            stopped: the report is left unchanged.

        Raises:
            TrecexamError: a file cannot be written.
        """
        if len(self._names) == 1:
            return update
        seen = json.dumps([self._names, {name: str(error) for name, error in self._errors.items()}])
        update = replace(update, changed=update.changed or self._last.facts(seen) is None)
        if not update.changed or (stopped and not update.graders):
            return update
        doing("what is of all graders")
        track = self._loaders.load(self._hold, updated=self._tracks, unable=self._errors)
        removed = remove_waiting(self.folder, track.unable)
        board = track_leaderboard(track)
        rejected = all_rejected(track, {name: each.rejected for name, each in update.graders.items()})
        table = Table(Rejected._fields, tuple(tuple(row) for row in rejected))
        contents = {**leaderboard_files(board), REJECTED: to_tsv(table).encode()}
        written = self._put(contents)
        if not self.folder.whole.report.write:
            files.remove(self.folder.shared_out / PAGE)
        elif not stopped:
            contents[PAGE] = joint_page(track, board, table)
            written += self._put({PAGE: contents[PAGE]})
        written += self._put_manifest(track, contents)
        if not stopped:
            self._last.remember(seen)
        written = [path for path in written if path not in update.written]
        return replace(update, written=(*update.written, *written), notes=(*update.notes, *removed))

    def _put(self, contents: Mapping[str, bytes]) -> list[Path]:
        files.make_folder(self.folder.shared_out)
        paths = ((self.folder.shared_out / name, content) for name, content in contents.items())
        return [path for path, content in paths if files.replace(path, content, into_special=False)]

    def _put_manifest(self, track: LoadedTrack, contents: Mapping[str, bytes]) -> list[Path]:
        """Write the manifest, of what is in out/ now: each grader's own is what it wrote last."""
        out, stale = self.folder.shared_out, stale_files(self.folder, track.unable)
        manifests: dict[str, dict[str, Any]] = {name: {} for name in self._names}
        manifests |= {name: read_object(folder.manifest_path) for name, folder in self._folders.items()}
        # The report and what was rejected are written when all graders are at their end.
        earlier = read_object(out / MANIFEST).get("outputs", {})
        outputs: dict[str, str] = {name: files.sha256(content) for name, content in contents.items()}
        for name in (REJECTED, PAGE):
            if name in earlier and (out / name).exists():
                outputs.setdefault(name, earlier[name])
        for name, folder in self._folders.items():
            for output, digest in manifests[name].get("outputs", {}).items():
                outputs[folder.output(output).relative_to(out).as_posix()] = digest
        graders = {
            name: {
                "kind": each.kind.name if (each := track.assessments.get(name)) else None,
                "files": "out/" if name == self._names[0] else f"out/{name}/",
                **{key: value for key, value in manifests[name].items() if key not in _SHARED},
                "config": manifests[name].get("config"),
                **({"unable": str(track.unable[name])} if name in track.unable else {}),
                **({"stale": stale[name]} if name in stale else {}),
            }
            for name in self._names
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
        return self._put({MANIFEST: to_json(manifest).encode()})
