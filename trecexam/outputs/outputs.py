"""Writes out/: every file atomically; the history first, the manifest last."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from converters.trec_qrels import write_qrels
from trecexam.features.agreement.agreement import agreements_if_any
from trecexam.features.correlation.comparison import compare, outlying, swapped
from trecexam.features.history.history import History
from trecexam.features.history.snapshot import labels_of
from trecexam.features.holes.holes import holes_report
from trecexam.features.leaderboard import tables as results
from trecexam.features.override.overriding import human_table
from trecexam.files import atomic as files
from trecexam.files.stamps import Rejected, stamp
from trecexam.line.evaluation import leaderboard, rubric_values
from trecexam.line.rejected import not_computable
from trecexam.line.sheets import Counts
from trecexam.line.versions import versions
from trecexam.outputs.extra_outputs import FOLDERS, made_beside, written_beside
from trecexam.tables.table import Table, to_json, to_tsv
from trecexam.track import TrackFolder

if TYPE_CHECKING:
    from trecexam.line.loaded import LoadedTrack

#: Those that are there only where they apply; so are all of `REPORT`.
OPTIONAL = (
    "correlation.tsv",
    "correlation.json",
    "swaps.tsv",
    "outliers.tsv",
    "agreement.tsv",
    "human.tsv",
)
MANIFEST = "manifest.json"
PAGE = "report.html"
#: The report's folder, and what of it is ours: a file that somebody else put there stays.
PLOTS = "plots"
_PLOTS = ("leaderboard", "scatter", "thresholds", "coverage", "grades", "grades_by_item", "items")
REPORT = (PAGE, *(f"{PLOTS}/{name}.{kind}" for name in _PLOTS for kind in ("svg", "png", "tsv")))


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

    def write(
        self,
        track: LoadedTrack,
        rejected: Sequence[Rejected],
        usage: Mapping[str, Any] | None,
        *,
        complete: bool,
    ) -> Written:
        """Writes what differs from the files that are there; before that, of a complete update, the history.

        Raises:
            TrecexamError: a file cannot be written; it and those after it are as they were.
        """
        out = self.folder.out
        folders = (out, *(out / name for name in (PLOTS, *FOLDERS)))
        for folder in folders:
            files.sweep(folder)
        contents = dict(self._contents(track, rejected, complete=complete))
        entry = self.history.note(track, contents["rubric.qrels"]) if complete else None
        hashes = {name: files.sha256(content) for name, content in contents.items()}
        written = [out / name for name, content in contents.items() if files.replace(out / name, content)]
        for name in (*OPTIONAL, *REPORT, *sorted(written_beside(out / MANIFEST))):
            if name not in hashes:
                files.remove(out / name)
        for folder in reversed(folders[1:]):
            with contextlib.suppress(OSError):
                # Only where nothing is left in it.
                folder.rmdir()
        manifest = to_json(self._manifest(track, len(rejected), usage, hashes, complete=complete)).encode()
        if files.replace(out / MANIFEST, manifest):
            written.append(out / MANIFEST)
        return Written(written, entry)

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

    def remember(self, seen: str, runs: int, counts: Counts, rejected: tuple[Rejected, ...]) -> None:
        """Notes that the outputs are up to date with these inputs."""
        memory = {
            "seen": seen,
            "outputs": self._stamps(),
            "runs": runs,
            "counts": asdict(counts),
            "rejected": rejected,
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

    def _contents(
        self, track: LoadedTrack, rejected: Sequence[Rejected], *, complete: bool
    ) -> Iterator[tuple[str, bytes]]:
        from trecexam.scores.labels import subtopic_qrels

        scores = track.config.scores
        ratings = track.ratings()

        yield "rubric.qrels", labels_of(track)
        buffer = io.BytesIO()
        write_qrels((row for query in ratings for row in subtopic_qrels(query, scores.min_rating)), buffer)
        yield "rubric.subtopics.qrels", buffer.getvalue()

        board = leaderboard(track)
        shown = {name: self.folder.shown(path) for name, path in track.run_files.items()}
        yield "leaderboard.tsv", to_tsv(results.leaderboard_table(board)).encode()
        yield (
            "leaderboard.json",
            to_json(results.leaderboard_json(board, shown, track.override_summary())).encode(),
        )
        yield (
            "per_query.tsv",
            to_tsv(results.per_query_table(rubric_values(track), board.measures)).encode(),
        )

        # Otherwise rejected.tsv says why.
        comparable = not_computable(track) is None
        compared = compare(track) if comparable else None
        if compared is not None:
            table = compared.table()
            yield "correlation.tsv", to_tsv(table).encode()
            yield (
                "correlation.json",
                to_json(compared.as_json() | {"human_ratings": track.override_summary()}).encode(),
            )
        agreed = agreements_if_any(track)
        if agreed is not None:
            yield "agreement.tsv", to_tsv(agreed.table()).encode()
        human = human_table(track) if track.overrides.decisions else None
        if human is not None:
            yield "human.tsv", to_tsv(human).encode()
        holes = holes_report(track)
        yield "holes.tsv", to_tsv(holes.table()).encode()
        swaps = swapped(track) if comparable else None
        if swaps is not None:
            yield "swaps.tsv", to_tsv(swaps.table()).encode()
        outliers = outlying(track) if comparable else None
        if outliers is not None:
            yield "outliers.tsv", to_tsv(outliers.table()).encode()
        refused = Table(("file", "line", "reason"), tuple(tuple(row) for row in rejected))
        yield "rejected.tsv", to_tsv(refused).encode()
        beside = made_beside(track)
        yield from beside.files.items()

        if track.config.report.write:
            from trecexam.outputs.report.findings import Findings
            from trecexam.outputs.report.gather import report_files

            yield from report_files(
                track,
                Findings(
                    board,
                    compared,
                    outliers,
                    agreed,
                    holes,
                    human,
                    refused,
                    track.counts,
                    complete,
                    _versions(),
                    beside.section,
                ),
            )

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
