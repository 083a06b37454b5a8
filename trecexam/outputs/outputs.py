"""Writes out/: every file atomically; the history first, the manifest last."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from converters.trec_qrels import write_qrels
from trecexam.features.agreement.agreement import agreements_if_any
from trecexam.features.correlation.comparison import compare, outlying, swapped
from trecexam.features.correlation.paired_scores import not_computable
from trecexam.features.history.history import History
from trecexam.features.history.snapshot import labels_of
from trecexam.features.holes.holes import holes_report
from trecexam.features.leaderboard import tables as results
from trecexam.features.override.overriding import human_table
from trecexam.files import atomic as files
from trecexam.files.stamps import Rejected, stamp
from trecexam.line.gradebook import Counts
from trecexam.line.versions import versions
from trecexam.outputs.extra_outputs import FOLDERS, made_beside, written_beside
from trecexam.tables.table import Table, to_json, to_tsv
from trecexam.track import TrackFolder

if TYPE_CHECKING:
    from trecexam.pipeline import Pipeline

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

    def write(self, pipeline: Pipeline, counts: Counts, *, complete: bool) -> Written:
        """Writes what differs from the files that are there; before that, of a complete update, the history.

        Raises:
            TrecexamError: a file cannot be written; it and those after it are as they were.
        """
        out = self.folder.out
        folders = (out, *(out / name for name in (PLOTS, *FOLDERS)))
        for folder in folders:
            files.sweep(folder)
        contents = dict(self._contents(pipeline, counts, complete=complete))
        entry = self.history.note(pipeline, contents["rubric.qrels"]) if complete else None
        hashes = {name: files.sha256(content) for name, content in contents.items()}
        written = [out / name for name, content in contents.items() if files.replace(out / name, content)]
        for name in (*OPTIONAL, *REPORT, *sorted(written_beside(out / MANIFEST))):
            if name not in hashes:
                files.remove(out / name)
        for folder in reversed(folders[1:]):
            with contextlib.suppress(OSError):
                # Only where nothing is left in it.
                folder.rmdir()
        manifest = to_json(self._manifest(pipeline, counts, hashes, complete=complete)).encode()
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

    def _contents(self, pipeline: Pipeline, counts: Counts, *, complete: bool) -> Iterator[tuple[str, bytes]]:
        from trecexam.scores.labels import subtopic_qrels

        snapshot = pipeline.snapshot
        assert snapshot is not None
        scores = pipeline.config.scores
        ratings = pipeline.ratings()

        yield "rubric.qrels", labels_of(pipeline)
        buffer = io.BytesIO()
        write_qrels((row for query in ratings for row in subtopic_qrels(query, scores.min_rating)), buffer)
        yield "rubric.subtopics.qrels", buffer.getvalue()

        board = pipeline.leaderboard()
        shown = {name: self.folder.shown(path) for name, path in snapshot.run_files.items()}
        yield "leaderboard.tsv", to_tsv(results.leaderboard_table(board)).encode()
        yield "leaderboard.json", to_json(results.leaderboard_json(board, shown, pipeline.said())).encode()
        yield (
            "per_query.tsv",
            to_tsv(results.per_query_table(pipeline.rubric_values(), board.measures)).encode(),
        )

        # Otherwise rejected.tsv says why.
        comparable = not_computable(pipeline) is None
        compared = compare(pipeline) if comparable else None
        if compared is not None:
            table = compared.table()
            yield "correlation.tsv", to_tsv(table).encode()
            yield (
                "correlation.json",
                to_json(compared.as_json() | {"human_ratings": pipeline.said()}).encode(),
            )
        agreed = agreements_if_any(pipeline)
        if agreed is not None:
            yield "agreement.tsv", to_tsv(agreed.table()).encode()
        human = human_table(pipeline) if pipeline.overrides.decisions else None
        if human is not None:
            yield "human.tsv", to_tsv(human).encode()
        holes = holes_report(pipeline)
        yield "holes.tsv", to_tsv(holes.table()).encode()
        swaps = swapped(pipeline) if comparable else None
        if swaps is not None:
            yield "swaps.tsv", to_tsv(swaps.table()).encode()
        outliers = outlying(pipeline) if comparable else None
        if outliers is not None:
            yield "outliers.tsv", to_tsv(outliers.table()).encode()
        rejected = Table(("file", "line", "reason"), tuple(tuple(row) for row in pipeline.rejected))
        yield "rejected.tsv", to_tsv(rejected).encode()
        beside = made_beside(pipeline)
        yield from beside.files.items()

        if pipeline.config.report.write:
            from trecexam.outputs.report.findings import Findings
            from trecexam.outputs.report.gather import report_files

            yield from report_files(
                pipeline,
                Findings(
                    board,
                    compared,
                    outliers,
                    agreed,
                    holes,
                    human,
                    rejected,
                    counts,
                    complete,
                    _versions(),
                    beside.section,
                ),
            )

    def _manifest(
        self, pipeline: Pipeline, counts: Counts, hashes: dict[str, str], *, complete: bool
    ) -> dict[str, Any]:
        snapshot = pipeline.snapshot
        assert snapshot is not None
        return {
            "complete": complete,
            "grader": dict(pipeline.grader.identity),
            "config": pipeline.config.model_dump(mode="json", exclude={"generator", "exam"}),
            "counts": {
                "queries": len(snapshot.bank.query_ids),
                "items": len(snapshot.bank),
                "retired_items": snapshot.bank.n_retired,
                "runs": len(snapshot.runs),
                "rejected": len(pipeline.rejected),
                **asdict(counts),
            },
            **({} if (usage := pipeline.usage()) is None else {"usage": usage}),
            "unparsed_policy": pipeline.config.scores.unparsed,
            "inputs": pipeline.digests,
            "outputs": hashes,
            "versions": _versions(),
        }


def _versions() -> dict[str, str | None]:
    """What the manifest names: pictures hang on what draws them, too."""
    return versions() | {"matplotlib": version("matplotlib")}
