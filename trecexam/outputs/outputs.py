"""Writes out/: every file atomically; the history first, then the leaderboard, the manifest last."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trecexam.features.agreement import outputs as agreement
from trecexam.features.agreement.outputs import own_agreement
from trecexam.features.correlation import outputs as correlation
from trecexam.features.correlation.outputs import own_comparison, own_outliers
from trecexam.features.exporting import outputs as exporting
from trecexam.features.history.history import History
from trecexam.features.holes import outputs as holes
from trecexam.features.holes.outputs import own_holes
from trecexam.features.leaderboard import outputs as leaderboard
from trecexam.features.override import outputs as override
from trecexam.features.override.outputs import own_ratings
from trecexam.files import atomic as files
from trecexam.files.stamps import Rejected, stamp
from trecexam.graders.base import identity_json
from trecexam.line import evaluation
from trecexam.line.output_files import OutputFiles
from trecexam.line.sheets import Counts
from trecexam.line.versions import versions
from trecexam.outputs.extra_outputs import FOLDERS, made_beside, written_beside
from trecexam.tables.table import Table, to_json, to_tsv
from trecexam.track import TrackFolder

if TYPE_CHECKING:
    from trecexam.line.loaded import LoadedTrack

#: Every feature's files in out/, in the order of the manifest.
FEATURES: tuple[OutputFiles, ...] = (
    *exporting.OUTPUTS,
    *leaderboard.OUTPUTS,
    correlation.CORRELATION,
    *agreement.OUTPUTS,
    *override.OUTPUTS,
    *holes.OUTPUTS,
    correlation.SWAPS,
    correlation.OUTLIERS,
)
#: Written before all others are made: what somebody who drops a run waits for.
FIRST = leaderboard.OUTPUTS
REJECTED = "rejected.tsv"
MANIFEST = "manifest.json"
PAGE = "report.html"
#: The report's folder, and what of it is ours: a file that somebody else put there stays.
PLOTS = "plots"
_PLOTS = ("leaderboard", "scatter", "thresholds", "coverage", "grades", "grades_by_item", "items")
REPORT = (PAGE, *(f"{PLOTS}/{name}.{kind}" for name in _PLOTS for kind in ("svg", "png", "tsv")))


class _Made(NamedTuple):
    """Files that were made together: the digests of the parts that they are made from, and their own."""

    token: list[str]
    hashes: dict[str, str]


class Written(NamedTuple):
    """The files in out/ that changed, and the entry of the history that says how (None: there is none)."""

    files: list[Path]
    entry: int | None


class Outputs:
    """The output folder of a track."""

    def __init__(self, folder: TrackFolder) -> None:
        self.folder = folder
        self.history = History(folder)
        self._memory = folder.state / "last-update.json"
        self._made: dict[str, _Made] = {}

    def write(
        self,
        track: LoadedTrack,
        rejected: Sequence[Rejected],
        usage: Mapping[str, Any] | None,
        *,
        complete: bool,
    ) -> Written:
        """Writes what differs from the files that are there: the history first, then the leaderboard,
        the manifest last.

        What is made from parts of the track that did not change since it was written is not made again.

        Raises:
            TrecexamError: a file cannot be written; it and those after it are as they were.
        """
        out = self.folder.out
        folders = (out, *(out / name for name in (PLOTS, *FOLDERS)))
        for folder in folders:
            files.sweep(folder)
        # Before anything is replaced: a history that cannot be written leaves the outputs as they were.
        noted = self.history.note(track) if complete else None
        earlier, made, written = self._made_earlier(), dict[str, _Made](), list[Path]()
        for group in (*FIRST, *(group for group in FEATURES if group not in FIRST)):
            key = group.names[0]
            token = [track.part_digests[part] for part in group.parts]
            known = earlier.get(key)
            if known is None or known.token != token:
                contents = group.make(track)
                written += self._put(contents)
                known = _Made(token, {name: files.sha256(content) for name, content in contents.items()})
            made[key] = known
        hashes = {name: digest for group in FEATURES for name, digest in made[group.names[0]].hashes.items()}
        contents = dict(self._others(track, rejected, complete=complete))
        written += self._put(contents)
        hashes |= {name: files.sha256(content) for name, content in contents.items()}
        optional = (name for group in FEATURES for name in group.names)
        for name in (*optional, *REPORT, *sorted(written_beside(out / MANIFEST))):
            if name not in hashes:
                files.remove(out / name)
        for folder in reversed(folders[1:]):
            with contextlib.suppress(OSError):
                # Only where nothing is left in it.
                folder.rmdir()
        if noted is not None:
            self.history.finish(noted, track)
        manifest = to_json(self._manifest(track, len(rejected), usage, hashes, complete=complete)).encode()
        written += self._put({MANIFEST: manifest})
        self._made = made
        return Written(written, noted and noted.entry)

    def _put(self, contents: Mapping[str, bytes]) -> list[Path]:
        """Writes the files that differ from those that are there; which."""
        paths = ((self.folder.out / name, content) for name, content in contents.items())
        return [path for path, content in paths if files.replace(path, content)]

    def _made_earlier(self) -> dict[str, _Made]:
        """What the last complete update made of which parts, as far as its files are as it left them."""
        try:
            memory = json.loads(self._memory.read_bytes())
            stamps, untouched = memory["outputs"], self._stamps()
            made = {key: _Made(*value) for key, value in memory["made"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}
        names = {name for name, value in stamps.items() if untouched.get(name) == value}
        return {key: value for key, value in made.items() if value.hashes.keys() <= names}

    def last(self, seen: str) -> tuple[int, Counts, tuple[Rejected, ...]] | None:
        """Runs, counts and rejected inputs of the last complete update, or None.

        None where anything has changed since, outputs included.
        """
        try:
            memory = json.loads(self._memory.read_bytes())
            if memory["seen"] == seen and memory["outputs"] == self._stamps():
                rejected = tuple(Rejected(*row) for row in memory["rejected"])
                return memory["runs"], Counts(**memory["counts"]), rejected
        except (OSError, ValueError, KeyError, TypeError):
            # Missing, or of another version: then everything is looked at again.
            pass
        return None

    def counted_grades(self, identity: Mapping[str, Any]) -> int:
        """How many cells of the grader with this identity had a grade when `out/` was written."""
        try:
            manifest = json.loads((self.folder.out / MANIFEST).read_bytes())
            counts = manifest["counts"]
            graded = sum(counts[status] for status in ("ok", "unparsed", "refused", "error"))
            return graded if identity_json(manifest["grader"]) == identity_json(identity) else 0
        except (OSError, ValueError, KeyError, TypeError):
            return 0

    def remember(self, seen: str, runs: int, counts: Counts, rejected: tuple[Rejected, ...]) -> None:
        """Notes that the outputs are up to date with these inputs."""
        memory = {
            "seen": seen,
            "outputs": self._stamps(),
            "runs": runs,
            "counts": asdict(counts),
            "rejected": rejected,
            "made": self._made,
        }
        files.replace(self._memory, json.dumps(memory).encode())

    def forget(self) -> None:
        """The next update looks at everything again."""
        files.remove(self._memory)

    def _stamps(self) -> dict[str, list[int]]:
        # A folder's stamp changes with what else is put there, so of the history it is the log's that counts.
        out = self.folder.out
        folders = (out, *(out / name for name in (PLOTS, *FOLDERS)))
        found = [path for folder in folders for path in sorted(folder.glob("[!.]*"))]
        stamps = {
            path.relative_to(out).as_posix(): stamp(path)
            for path in (*(path for path in found if path.is_file()), self.history.log_path)
        }
        return {name: list(value) for name, value in stamps.items() if value is not None}

    def _others(
        self, track: LoadedTrack, rejected: Sequence[Rejected], *, complete: bool
    ) -> Iterator[tuple[str, bytes]]:
        """What hangs on more than the parts of the track: what was rejected, and the report on all."""
        refused = Table(("file", "line", "reason"), tuple(tuple(row) for row in rejected))
        yield REJECTED, to_tsv(refused).encode()
        extra = made_beside(track)
        yield from extra.files.items()
        if track.config.report.write:
            from trecexam.outputs.report.findings import Findings
            from trecexam.outputs.report.gather import report_files

            findings = Findings(
                evaluation.leaderboard(track),
                own_comparison(track),
                own_outliers(track),
                own_agreement(track),
                own_holes(track),
                own_ratings(track),
                refused,
                track.counts,
                complete,
                _versions(),
                extra.section,
            )
            yield from report_files(track, findings)

    def _manifest(
        self,
        track: LoadedTrack,
        n_rejected: int,
        usage: Mapping[str, Any] | None,
        hashes: dict[str, str],
        *,
        complete: bool,
    ) -> dict[str, Any]:
        return {
            "complete": complete,
            "grader": dict(track.grader.identity),
            "config": track.config.model_dump(mode="json", exclude={"generator", "exam"}),
            "counts": {
                "queries": len(track.bank.query_ids),
                "items": len(track.bank),
                "retired_items": track.bank.n_retired,
                "runs": len(track.runs),
                "rejected": n_rejected,
                **asdict(track.counts),
            },
            **({} if usage is None else {"usage": usage}),
            "unparsed_policy": track.config.scores.unparsed,
            "inputs": track.digests,
            "outputs": hashes,
            "versions": _versions(),
        }


def _versions() -> dict[str, str | None]:
    """What the manifest names: pictures hang on what draws them, too."""
    return versions() | {"matplotlib": version("matplotlib")}
