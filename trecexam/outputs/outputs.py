"""Writes out/: every file atomically; the history first, then the leaderboard, the manifest last."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from converters.installed import version
from trecexam.files import atomic as files
from trecexam.files.kept import read_object
from trecexam.files.stamps import Rejected
from trecexam.folder import OF_ALL, TrackFolder
from trecexam.line.evaluation import own_leaderboard
from trecexam.line.sheets import Counts
from trecexam.outputs.features import features
from trecexam.outputs.history import HISTORY, MovedRun, log_moved_runs
from trecexam.outputs.last_update import LastUpdate
from trecexam.outputs.report.contents import UpdateFacts, report_files
from trecexam.tables.plots.canvas import FOLDER as PLOTS
from trecexam.tables.plots.canvas import KINDS
from trecexam.tables.section import ExtraFiles
from trecexam.tables.table import Table, to_json, to_tsv
from trecexam.version import versions

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment
    from trecexam.line.output_files import Feature

REJECTED = "rejected.tsv"
MANIFEST = "manifest.json"
PAGE = "report.html"


class Written(NamedTuple):
    """The files in out/ that changed, and the runs that moved.

    `complete` is False where a stop was asked for before all were written: the next update writes the others.
    """

    files: list[Path]
    moved: tuple[MovedRun, ...]
    complete: bool = True


class _WrittenPage(NamedTuple):
    """The files of the report that changed, and the sha256 (hex) of all of them, by their names in out/."""

    files: list[Path]
    hashes: dict[str, str]


class Outputs:
    """The output folder of a track."""

    def __init__(self, folder: TrackFolder) -> None:
        self.folder = folder
        self._last = LastUpdate(folder.last_update_path, folder.grader or "", self._written)

    def write(
        self,
        track: Assessment,
        rejected: Sequence[Rejected],
        usage: Mapping[str, Any] | None,
        stop: Callable[[], bool] = lambda: False,
        doing: Callable[[str], None] = lambda stage: None,
        *,
        complete: bool = True,
    ) -> Written:
        """Makes all files, and writes what differs from those that are there: the history first, then the
        leaderboard, the manifest last.

        Args:
            stop: asked before each output but the leaderboard; where it comes to be True, the others stay as
                they are.
            doing: called with the name of what is made next.
            complete: whether the grader was asked about all cells.

        Raises:
            TrecexamError: a file cannot be written; it and those after it are as they were.
        """
        folders = self._folders()
        for folder in folders:
            files.sweep(folder)
        doing(f"out/{HISTORY}")
        # Before anything is replaced: a history that cannot be written leaves the outputs as they were.
        moved = log_moved_runs(self.folder.out / HISTORY, own_leaderboard(track)) if complete else ()
        hashes_of, written = dict[str, dict[str, str]](), list[Path]()
        groups = [group for feature in _of_kind(track) for group in feature.files]
        for group in sorted(groups, key=lambda group: not group.first):
            key = group.key
            if stop() and not group.first:
                return Written(written, moved, complete=False)
            doing(f"out/{key}")
            contents = group.make(track)
            written += self._put(contents)
            hashes_of[key] = {name: files.sha256(content) for name, content in contents.items()}
        hashes = {name: digest for group in groups for name, digest in hashes_of[group.key].items()}
        if stop():
            return Written(written, moved, complete=False)
        if not self.folder.is_one_of_several:
            contents = {REJECTED: to_tsv(_rejected(rejected)).encode()}
            written += self._put(contents)
            hashes |= {REJECTED: files.sha256(contents[REJECTED])}
        doing(f"out/{PAGE}")
        page = self._write_page(track, rejected, complete=complete)
        written += page.files
        hashes |= page.hashes
        names = (name for feature in features() for group in feature.files for name in group.names)
        for name in (name for name in names if name not in hashes):
            files.remove(self.folder.output(name))
        for folder in reversed(folders[1:]):
            with contextlib.suppress(OSError):
                # Only where nothing is left in it.
                folder.rmdir()
        manifest = self._manifest(track, len(rejected), usage, hashes, complete=complete)
        written += self._put({MANIFEST: to_json(manifest).encode()})
        return Written(written, moved)

    def _write_page(self, track: Assessment, rejected: Sequence[Rejected], *, complete: bool) -> _WrittenPage:
        """Writes the report, its plots, and the files of the grader's items that have scores of their own.

        Raises:
            TrecexamError: a file cannot be written.
        """
        contents = dict(self._page(track, rejected, complete=complete))
        written = self._put(contents)
        drawn = (feature.plots for feature in features() if feature.report is not None)
        plots = (f"{PLOTS}/{name}.{kind}" for names in drawn for name in names for kind in KINDS)
        for name in (PAGE, *plots, *sorted(_extra_written(self.folder.manifest_path))):
            if name not in contents:
                files.remove(self.folder.output(name))
        return _WrittenPage(written, {name: files.sha256(content) for name, content in contents.items()})

    def _put(self, contents: Mapping[str, bytes]) -> list[Path]:
        """Writes the files that differ from those that are there; which."""
        paths = ((self.folder.output(name), content) for name, content in contents.items())
        return [path for path, content in paths if files.replace(path, content, into_special=False)]

    def last(self, seen: str, environments: int) -> tuple[int, Counts, tuple[Rejected, ...]] | None:
        """Runs, counts and rejected inputs of the last complete update, or None.

        None where anything has changed since, outputs included.

        Args:
            environments: see `remember`.
        """
        facts = self._last.facts(seen)
        if facts is None or facts["environments"] != environments:
            return None
        rejected = tuple(Rejected(*row) for row in facts["rejected"])
        return facts["runs"], Counts(**facts["counts"]), rejected

    def remember(
        self,
        seen: str,
        runs: int,
        counts: Counts,
        rejected: tuple[Rejected, ...],
        stored: Sequence[str | int],
        environments: int,
    ) -> None:
        """Notes that the outputs are up to date with these inputs.

        Args:
            stored: the digest of each grader that costs, then how many of its grades are stored.
            environments: how many there are that answers in the store were made on: the manifest says
                whether they are mixed.
        """
        self._last.remember(
            seen,
            runs=runs,
            counts=asdict(counts),
            rejected=rejected,
            stored=stored,
            environments=environments,
        )

    def renew_manifest(self) -> None:
        """Has the manifest say what features add to it now; without one, the next update does.

        Raises:
            TrecexamError: it cannot be written.
        """
        manifest = read_object(self.folder.manifest_path)
        if manifest:
            self._put({MANIFEST: to_json({**manifest, **self._added()}).encode()})

    def renew_page(self, track: Assessment, rejected: Sequence[Rejected]) -> None:
        """Writes the report again, after an update was followed by more that it shows.

        Raises:
            TrecexamError: it cannot be written.
        """
        page = self._write_page(track, rejected, complete=True)
        manifest = read_object(self.folder.manifest_path)
        self._put({MANIFEST: to_json({**manifest, "outputs": manifest["outputs"] | page.hashes}).encode()})

    def _added(self) -> dict[str, Any]:
        """What features add to the manifest."""
        parts = (feature.manifest for feature in features() if feature.manifest is not None)
        return {name: value for part in parts for name, value in part(self.folder).items()}

    def forget(self) -> None:
        """The next update looks at everything again."""
        self._last.forget()

    def _written(self) -> dict[str, Path]:
        """The files of the grader that there are, by their names in out/."""
        paths = [path for folder in self._folders() for path in sorted(folder.glob("[!.]*"))]
        path_of = {path.relative_to(self.folder.out).as_posix(): path for path in paths if path.is_file()}
        # What is of all graders is no output of the first.
        return path_of | {name: self.folder.output(name) for name in OF_ALL}

    def _folders(self) -> tuple[Path, ...]:
        """out/, and those of its folders in which files are ours; what somebody else put there stays."""
        out = self.folder.out
        return (out, *(out / name for name in (PLOTS, *_extra_folders())))

    def _page(
        self,
        track: Assessment,
        rejected: Sequence[Rejected],
        *,
        complete: bool,
    ) -> Iterator[tuple[str, bytes]]:
        """The report, which depends on more than the parts of the track, and what is at its head."""
        extra = _extra_files(track)
        yield from extra.files.items()
        if track.config.report.write:
            facts = UpdateFacts(_rejected(rejected), complete, _versions(), extra.head)
            yield from report_files(track, _of_kind(track), facts)

    def _manifest(
        self,
        track: Assessment,
        n_rejected: int,
        usage: Mapping[str, Any] | None,
        hashes: dict[str, str],
        *,
        complete: bool,
    ) -> dict[str, Any]:
        return {
            "complete": complete,
            "grader": dict(track.grader.identity),
            **track.grades.environments().as_json(),
            "config": track.config.model_dump(mode="json", exclude={"generator", "exam", "learn", "cells"}),
            "counts": {
                "queries": len(track.bank.query_ids),
                "items": len(track.bank),
                "retired_items": track.bank.n_retired,
                "runs": len(track.runs),
                **({"left_out_runs": track.inputs.left_out_runs} if track.inputs.left_out_runs else {}),
                "rejected": n_rejected,
                **asdict(track.counts),
            },
            **({} if usage is None else {"usage": usage}),
            "unparsed_policy": track.config.scores.unparsed,
            "inputs": track.digests,
            "outputs": hashes,
            "versions": _versions(),
            **self._added(),
        }


def _of_kind(track: Assessment) -> list[Feature]:
    """Every feature that a grader of this kind has."""
    return [feature for feature in features() if feature.applies(track)]


def _rejected(rows: Sequence[Rejected]) -> Table:
    return Table(Rejected._fields, tuple(tuple(row) for row in rows))


def _extra_folders() -> tuple[str, ...]:
    """The folders of items that have scores of their own."""
    return tuple(feature.extra.folder for feature in features() if feature.extra is not None)


def _extra_files(track: Assessment) -> ExtraFiles:
    """The files of the grader's items, where these have scores of their own, by their names in out/."""
    for feature in features():
        if feature.extra is not None and feature.extra.kind in track.grader.item_kinds:
            made = feature.extra.make(track)
            contents = {f"{feature.extra.folder}/{name}": content for name, content in made.files.items()}
            return ExtraFiles(contents, made.head)
    return ExtraFiles({})


def _extra_written(manifest: Path) -> frozenset[str]:
    """The names of those that the last update wrote, by its manifest; empty where there is none."""
    folders = tuple(f"{folder}/" for folder in _extra_folders())
    outputs = read_object(manifest).get("outputs")
    names = outputs if isinstance(outputs, dict) else {}
    return frozenset(name for name in names if name.startswith(folders) and ".." not in name)


def _versions() -> dict[str, str | None]:
    """What the manifest names: pictures depend on what draws them, too."""
    return versions() | {"matplotlib": version("matplotlib")}
