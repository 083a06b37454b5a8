"""What is of all graders of a track in out/: leaderboard, report, what was rejected, the manifest."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trecexam.features.leaderboard.joint import track_leaderboard
from trecexam.files import atomic as files
from trecexam.files.kept import read_object
from trecexam.files.stamps import Rejected
from trecexam.folder import OF_ALL
from trecexam.line.loaded_track import LoadedTrack, TrackLoaders
from trecexam.line.rejected import all_rejected
from trecexam.line.track_graders import usable_folders
from trecexam.outputs.earlier_files import stale_files
from trecexam.outputs.last_update import LastUpdate
from trecexam.outputs.outputs import MANIFEST, PAGE, REJECTED
from trecexam.outputs.report.joint import joint_page
from trecexam.scores.leaderboard import Leaderboard
from trecexam.tables.table import Table, to_json, to_tsv

#: What each grader's manifest has that is the same in all.
_SHARED = ("inputs", "outputs", "versions", "config")


class JointOutputs:
    """The outputs of a track that are of all its graders. There are several."""

    def __init__(self, loaders: TrackLoaders) -> None:
        self.folder = loaders.folder
        self._names = tuple(loaders)
        self._folders = usable_folders(loaders.folder)
        self._last = LastUpdate(
            self.folder.last_update_path,
            "",
            lambda: {name: self.folder.shared_out / name for name in OF_ALL},
        )

    def is_current(self, unable: Mapping[str, str]) -> bool:
        """Whether they are as the last complete update left them, and the same graders could not go on."""
        return self._last.facts(self._seen(unable)) is not None

    def remember(self, unable: Mapping[str, str]) -> None:
        """Notes that they are up to date."""
        self._last.remember(self._seen(unable))

    def _seen(self, unable: Mapping[str, str]) -> str:
        return json.dumps([self._names, dict(unable)])

    def write_leaderboard(self, track: LoadedTrack) -> list[str]:
        """Writes the leaderboard, and the manifest; the files that changed, by their names in out/.

        Raises:
            TrecexamError: one cannot be written.
        """
        contents = _leaderboard(track_leaderboard(track))
        written = self._put(contents)
        return [*written, *self._put_manifest(track, contents)]

    def write(
        self, track: LoadedTrack, rejected: Mapping[str, Sequence[Rejected]], stop: Callable[[], bool]
    ) -> list[str]:
        """Writes all of them, the manifest last; the files that changed, by their names in out/.

        Args:
            rejected: of each grader, where that is known; else it is looked up.
            stop: asked before the report, which is left unchanged where it is True.

        Raises:
            TrecexamError: one cannot be written.
        """
        board = track_leaderboard(track)
        table = Table(Rejected._fields, tuple(tuple(row) for row in all_rejected(track, rejected)))
        contents = {**_leaderboard(board), REJECTED: to_tsv(table).encode()}
        written = self._put(contents)
        if not self.folder.whole.report.write:
            files.remove(self.folder.shared_out / PAGE)
        elif not stop():
            contents[PAGE] = joint_page(track, board, table)
            written += self._put({PAGE: contents[PAGE]})
        return [*written, *self._put_manifest(track, contents)]

    def _put(self, contents: Mapping[str, bytes]) -> list[str]:
        out = self.folder.shared_out
        files.make_folder(out)
        return [
            name
            for name, content in contents.items()
            if files.replace(out / name, content, into_special=False)
        ]

    def _put_manifest(self, track: LoadedTrack, contents: Mapping[str, bytes]) -> list[str]:
        """Writes the manifest, of what is in out/ now: each grader's own is what it wrote last."""
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


def _leaderboard(board: Leaderboard) -> dict[str, bytes]:
    return {"leaderboard.tsv": board.to_tsv().encode(), "leaderboard.json": board.to_json().encode()}
