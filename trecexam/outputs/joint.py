"""What is of all graders of a track in out/: the joint leaderboard, the report's head, what was rejected, the
manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from trecexam.features.leaderboard.joint import joint_leaderboard
from trecexam.files import atomic as files
from trecexam.files.kept import read_object, recall, remember
from trecexam.files.stamps import Rejected, stamp
from trecexam.line.loaded_track import LoadedTrack, TrackLoaders
from trecexam.line.rejected import all_rejected, joint_rejected
from trecexam.line.track_graders import usable_folders
from trecexam.outputs.outputs import MANIFEST, PAGE, REJECTED, Outputs
from trecexam.scores.leaderboard import Leaderboard
from trecexam.tables.plots.drawings import FOLDER as PLOTS
from trecexam.tables.section import ReportHead, ReportPart
from trecexam.tables.table import Table, to_json, to_tsv
from trecexam.track import OF_ALL, TrackFolder

#: Runs that the report lists.
_RUNS = 200
#: What each grader's manifest has that is the same in all.
_SHARED = ("inputs", "outputs", "versions", "config")


class JointOutputs:
    """The outputs of a track that are of all its graders. There are several."""

    def __init__(self, loaders: TrackLoaders) -> None:
        self.folder = loaders.folder
        self._names = tuple(loaders)
        self._folders = usable_folders(loaders.folder)
        self._memory = self.folder.shared_state / "joint.json"

    def is_current(self, unable: Mapping[str, str]) -> bool:
        """Whether they are as the last complete update left them, and the same graders could not go on."""
        memory = recall(self._memory)
        return bool(memory) and memory["of"] == self._of(unable)

    def remember(self, unable: Mapping[str, str]) -> None:
        """Notes that they are up to date."""
        remember(self._memory, {"of": self._of(unable)})

    def _of(self, unable: Mapping[str, str]) -> Any:
        stamps = {name: stamp(self.folder.shared_out / name) for name in OF_ALL}
        return {
            "graders": list(self._names),
            "unable": dict(unable),
            "outputs": {name: value and list(value) for name, value in stamps.items()},
        }

    def write_leaderboard(self, track: LoadedTrack) -> list[str]:
        """Writes the leaderboard, and the manifest; the files that changed, by their names in out/.

        Raises:
            TrecexamError: one cannot be written.
        """
        contents = _leaderboard(joint_leaderboard(track))
        written = self._put(contents)
        return [*written, *self._put_manifest(track, contents)]

    def write(
        self, track: LoadedTrack, rejected: Mapping[str, Sequence[Rejected]], stop: Callable[[], bool]
    ) -> list[str]:
        """Writes all of them, the manifest last; the files that changed, by their names in out/.

        Args:
            rejected: of each grader, where that is known; else it is looked up.
            stop: asked before the report, which stays as it is where it is True.

        Raises:
            TrecexamError: one cannot be written.
        """
        of_each = {
            name: tuple(rejected[name]) if name in rejected else all_rejected(each)
            for name, each in track.assessments.items()
        }
        board = joint_leaderboard(track)
        table = Table(Rejected._fields, tuple(tuple(row) for row in joint_rejected(self.folder, of_each)))
        contents = {**_leaderboard(board), REJECTED: to_tsv(table).encode()}
        written = self._put(contents)
        hashes: dict[str, str] = {}
        first = track.assessments.get(self._names[0])
        if first is not None and not stop():
            complete = bool(read_object(first.folder.manifest_path).get("complete"))
            outputs, head = Outputs(first.folder), self._head(track, board)
            page = outputs.write_page(first, of_each[first.name], complete=complete, joint=head)
            written += [path.relative_to(self.folder.shared_out).as_posix() for path in page.files]
            hashes = page.hashes
        return [*written, *self._put_manifest(track, contents, hashes)]

    def _put(self, contents: Mapping[str, bytes]) -> list[str]:
        out = self.folder.shared_out
        files.make_folder(out)
        return [
            name
            for name, content in contents.items()
            if files.replace(out / name, content, into_special=False)
        ]

    def _put_manifest(
        self, track: LoadedTrack, contents: Mapping[str, bytes], hashes: Mapping[str, str] | None = None
    ) -> list[str]:
        """Writes the manifest, of what is in out/ now: each grader's own is what it wrote last."""
        out, before = self.folder.shared_out, read_object(self.folder.shared_out / MANIFEST)
        own: dict[str, dict[str, Any]] = {name: {} for name in self._names}
        own |= {name: read_object(folder.manifest_path) for name, folder in self._folders.items()}
        outputs: dict[str, str] = {name: files.sha256(content) for name, content in contents.items()}
        if hashes is None:
            # The report and what was rejected are written when all graders are at their end.
            earlier = before.get("outputs", {})
            kept = (name for name in earlier if name in (PAGE, REJECTED) or name.startswith("plots/"))
            hashes = {name: earlier[name] for name in kept if (out / name).exists()}
        outputs |= hashes
        for name, folder in self._folders.items():
            for output, digest in own[name].get("outputs", {}).items():
                outputs[folder.output(output).relative_to(out).as_posix()] = digest
        graders = {
            name: {
                "kind": each.kind.name if (each := track.assessments.get(name)) else None,
                "files": "out/" if name == self._names[0] else f"out/{name}/",
                **{key: value for key, value in own[name].items() if key not in _SHARED},
                "config": own[name].get("config"),
                **({"unable": str(track.unable[name])} if name in track.unable else {}),
            }
            for name in self._names
        }
        manifest = {
            "complete": not track.unable and all(each.get("complete") for each in own.values()),
            "graders": graders,
            "inputs": {
                file: digest for each in own.values() for file, digest in each.get("inputs", {}).items()
            },
            "outputs": outputs,
            "versions": next((each["versions"] for each in own.values() if "versions" in each), {}),
        }
        return self._put({MANIFEST: to_json(manifest).encode()})

    def _head(self, track: LoadedTrack, board: Leaderboard) -> ReportHead:
        """What the report begins with."""
        first, *others = self._names
        return ReportHead(
            "Automatic evaluation by several graders: each rates other texts, or asks other things of them, "
            "and runs are scored by these ratings.",
            ReportPart("beside", board, "All graders", files=("leaderboard.tsv",), rows=_RUNS),
            f"What follows is of {first} alone; of the others:" if others else "",
            links={name: f"{name}/{PAGE}" for name in others if name in track.assessments},
        )


def _leaderboard(board: Leaderboard) -> dict[str, bytes]:
    return {"leaderboard.tsv": board.to_tsv().encode(), "leaderboard.json": board.to_json().encode()}


def remove_gone(folder: TrackFolder, names: Sequence[str]) -> None:
    """Removes outputs of graders that the track has no more, and of one that is the first, or alone, now.

    Histories, which cannot be made again, stay: they go where their graders' files are now.

    Args:
        names: of those that it has.
    """
    manifest = read_object(folder.shared_out / MANIFEST)
    before, outputs = manifest.get("graders"), manifest.get("outputs")
    if not isinstance(before, dict) or not isinstance(outputs, dict):
        return
    if before:
        _move_histories(folder, next(iter(before)), names[0])
    for name in before:
        if name in names[1:]:
            continue
        is_first = len(names) > 1 and name == names[0]
        for output in outputs:
            place, _, own = output.partition("/")
            if place == name and ".." not in output and not (is_first and own in OF_ALL):
                files.remove(folder.shared_out / output)
        if not is_first:
            files.remove(folder.shared_out / name / MANIFEST)
            for left in (folder.shared_out / name / PLOTS, folder.shared_out / name):
                # What somebody put there, and its history, stay.
                with suppress(OSError):
                    left.rmdir()


def _move_histories(folder: TrackFolder, first_before: str, first: str) -> None:
    """The history of who was the first goes to its own folder, that of who is the first now from there.

    Each step is done or not, and those that are not are done at the next update, which begins with this.
    """
    if first_before == first:
        return
    for top, name in ((folder.shared_state, "history.json.gz"), (folder.shared_out, "history")):
        for source, target in (
            (top / name, top / first_before / name),
            (top / first / name, top / name),
        ):
            if source.exists() and not target.exists():
                files.make_folder(target.parent)
                source.rename(target)
