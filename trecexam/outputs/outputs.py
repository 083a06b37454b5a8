"""Writer of out/: each file atomically; the history first, then the leaderboard, the manifest last."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path, PurePath
from typing import Any

from converters.installed import version
from trecexam.extension import extensions, named
from trecexam.feature import Feature
from trecexam.features.agreement.agreement import AGREEMENT
from trecexam.features.correlation.outputs import CORRELATION
from trecexam.features.exporting.outputs import EXPORTING
from trecexam.features.holes.holes import HOLES
from trecexam.features.leaderboard.board import own_leaderboard
from trecexam.features.leaderboard.outputs import LEADERBOARD
from trecexam.features.override.overriding import OVERRIDE
from trecexam.files import atomic as files
from trecexam.files.kept import read_object, recall, remember
from trecexam.files.stamps import Rejected, stamp
from trecexam.folder import OF_ALL, TrackFolder
from trecexam.grades.graded_track import GradedTrack
from trecexam.outputs.history import HISTORY, MovedRun, log_moved_runs
from trecexam.outputs.report import PAGE, report
from trecexam.results.plots.canvas import FOLDER as PLOTS
from trecexam.results.plots.canvas import KINDS
from trecexam.results.result import Result
from trecexam.results.table import Table, to_json, to_tsv
from trecexam.version import versions

REJECTED = "rejected.tsv"
MANIFEST = "manifest.json"
#: The core's features, in the order of the manifest and of the sections of the report.
_SCORES: tuple[Feature, ...] = (EXPORTING, LEADERBOARD, CORRELATION, AGREEMENT)
_PEOPLE: tuple[Feature, ...] = (OVERRIDE, HOLES)


@cache
def features() -> tuple[Feature, ...]:
    """Return the core's features with the extensions' features before people's ratings or at the end.

    Raises:
        TrecexamError: an extension cannot be loaded.
    """
    added: list[Feature] = [named(at) for extension in extensions() for at in extension.features]
    early = (feature for feature in added if feature.early)
    return (*_SCORES, *early, *_PEOPLE, *(feature for feature in added if not feature.early))


class Outputs:
    """Output files of one grader or, for the folder of a track with several graders, of all graders.

    Attributes:
        changed: the files that changed.
        moved: the runs that moved.
        notes: what features report about their part of the update.
        hashes: name in out/ -> sha256 (hex) of each existing file.
    """

    def __init__(self, folder: TrackFolder) -> None:
        self.folder = folder
        self.clear()

    def clear(self) -> None:
        """Begin a new write."""
        self.changed: list[Path] = []
        self.moved: tuple[MovedRun, ...] = ()
        self.notes: list[str] = []
        self.hashes: dict[str, str] = {}

    def write(
        self,
        track: GradedTrack,
        rejected: Sequence[Rejected],
        usage: Mapping[str, Any] | None,
        stop: Callable[[], bool] = lambda: False,
        doing: Callable[[str], None] = lambda stage: None,
        *,
        complete: bool = True,
    ) -> bool:
        """Make all files of a grader and write changed files; return False where `stop` ended the write.

        The history is first, then the leaderboard; the manifest is last.

        Args:
            stop: called before each output but the leaderboard; True leaves the remaining files unchanged.
            doing: called with the name of the next file.
            complete: True if the grader was asked about all cells.

        Raises:
            TrecexamError: a file cannot be written; this and later files stay unchanged.
        """
        self.clear()
        for folder in self._folders():
            files.sweep(folder)
        # Imports numpy's BLAS, whose threads spend more time on waiting than on multiplying.
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1, user_api="blas"):
            doing(f"out/{HISTORY}")
            # First, so that an unwritable history leaves all outputs unchanged.
            if complete:
                self.moved = log_moved_runs(self.folder.out / HISTORY, own_leaderboard(track))
            for feature in sorted(features(), key=lambda each: "leaderboard.tsv" not in each.files):
                for name, (_, make) in feature.files.items() if feature.applies(track) else ():
                    if name not in OF_ALL and stop():
                        return False
                    doing(f"out/{name}")
                    self.put(name, make(track))
            if stop():
                return False
            doing(f"out/{PAGE}")
            self._finish(track, rejected, usage, complete=complete)
        # All files match the manifest now, even if a feature's own step fails later.
        for feature in features() if complete else ():
            if feature.updated is not None and feature.applies(track):
                changed, notes = feature.updated(track)
                self.notes += notes
                if changed:
                    self.changed += changed
                    self._finish(track, rejected, usage, complete=complete)
        return True

    def _finish(
        self,
        track: GradedTrack,
        rejected: Sequence[Rejected],
        usage: Mapping[str, Any] | None,
        *,
        complete: bool,
    ) -> None:
        """Write rejected.tsv, the report and the manifest, and remove stale files."""
        table = rejected_table(rejected)
        # Pictures depend on versions of the drawing library.
        packages = versions() | {"matplotlib": version("matplotlib")}
        if not self.folder.is_one_of_several:
            self.put(REJECTED, to_tsv(table).encode())
        if track.config.report.write:
            for name, content in report(track, features(), table, packages, complete=complete).items():
                self.put(name, content)
        declared = [name for feature in features() for name in feature.files]
        plots = [name for feature in features() for name in (*feature.plots, *feature.joint_plots)]
        all_names = (*declared, PAGE, *(f"{PLOTS}/{plot}.{kind}" for plot in plots for kind in KINDS))
        stale = (self.folder.output(name) for name in all_names if name not in self.hashes)
        remove_outputs(self.folder.shared_out, stale)
        order = [name for name in dict.fromkeys((*declared, *self.hashes)) if name in self.hashes]
        manifest = {
            "complete": complete,
            "grader": dict(track.grader.identity),
            **({"environments": made_on} if (made_on := track.grades.environments()) else {}),
            "config": track.config.values(),
            "counts": {
                "queries": len(track.bank.query_ids),
                "items": len(track.bank),
                "retired_items": track.bank.n_retired,
                "runs": len(track.runs),
                **({"left_out_runs": track.inputs.left_out_runs} if track.inputs.left_out_runs else {}),
                "rejected": len(rejected),
                **asdict(track.counts),
            },
            **({} if usage is None else {"usage": usage}),
            "unparsed_policy": track.config.scores.unparsed,
            "inputs": track.digests,
            "outputs": {name: self.hashes[name] for name in order},
            "versions": packages,
        }
        self.put_manifest(manifest)

    def put(self, name: str, content: Result | bytes | None) -> None:
        """Write a file if its content differs from the existing file; None writes nothing."""
        if isinstance(content, Result):
            content = (content.to_json() if name.endswith(".json") else content.to_tsv()).encode()
        if content is not None:
            self.hashes[name] = files.sha256(content)
            path = self.folder.output(name)
            if files.replace(path, content, into_special=False):
                self.changed.append(path)

    def put_manifest(self, manifest: Mapping[str, Any], *, remove: bool = True) -> None:
        """Write the manifest and, with `remove`, remove files that only the earlier manifest names."""
        path = self.folder.manifest_path
        earlier = read_object(path)
        if files.replace(path, to_json(manifest).encode(), into_special=False):
            self.changed.append(path)
        if remove:
            graders = (
                name for name in below_out(earlier.get("graders")) if name not in manifest.get("graders", ())
            )
            names = (*below_out(earlier.get("outputs")), *below_out(f"{name}/{MANIFEST}" for name in graders))
            stale = (self.folder.output(name) for name in names if name not in manifest["outputs"])
            remove_outputs(self.folder.shared_out, stale)

    # The last complete update: with unchanged inputs and outputs, there is nothing to do.

    def last(self, seen: str) -> dict[str, Any] | None:
        """Return the facts of the last complete update; None where inputs or outputs changed since.

        Args:
            seen: a digest of everything that the update depends on.
        """
        facts: dict[str, Any] = recall(self.folder.last_update_path).get(self.folder.grader or "", {})
        return facts if facts.get("seen") == seen and facts["outputs"] == self._stamps() else None

    def remember(self, seen: str, **facts: Any) -> None:
        """Store facts of a complete update."""
        path = self.folder.last_update_path
        facts = {"seen": seen, "outputs": self._stamps(), **facts}
        remember(path, {**recall(path), self.folder.grader or "": facts})

    def forget(self) -> None:
        """Forget the last update, so that the next update checks everything again."""
        self.remember("")

    def _stamps(self) -> dict[str, list[int]]:
        """Return the stamps of existing files, by their names in out/."""
        paths = {name: self.folder.output(name) for name in OF_ALL}
        if self.folder.grader is not None or len(self.folder.whole.graders) < 2:
            present = [path for folder in self._folders() for path in sorted(folder.glob("[!.]*"))]
            names = {path.relative_to(self.folder.out).as_posix(): path for path in present if path.is_file()}
            # Files of all graders are no outputs of the first grader.
            paths = names | paths
        return {name: list(at) for name, path in paths.items() if (at := stamp(path)) is not None}

    def _folders(self) -> list[Path]:
        """Return out/ and its sub-folders with our files; files from elsewhere stay."""
        names = (name for feature in features() for name in feature.files)
        parents = dict.fromkeys((".", PLOTS, *(str(PurePath(name).parent) for name in names)))
        return [self.folder.out / parent for parent in parents]


def below_out(names: object) -> Iterator[str]:
    """Yield the names in a manifest that are paths below out/."""
    names = names if isinstance(names, Iterable) else ()
    return (name for name in map(str, names) if not name.startswith("/") and ".." not in name)


def remove_outputs(out: Path, paths: Iterable[Path]) -> None:
    """Remove files of out/ and sub-folders that are then empty; files from elsewhere stay."""
    folders = set()
    for path in paths:
        files.remove(path)
        folders |= {folder for folder in path.parents if folder != out and folder.is_relative_to(out)}
    for folder in sorted(folders, reverse=True):
        with contextlib.suppress(OSError):
            folder.rmdir()


def rejected_table(rows: Sequence[Rejected]) -> Table:
    """Return out/rejected.tsv."""
    return Table(Rejected._fields, tuple(rows))
