"""Which runs are evaluated, on which queries, to which depth."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from converters.errors import ConversionError
from trecexam.errors import TrecexamError, did_you_mean
from trecexam.extensions.erag.labels import Ranked
from trecexam.files.stamps import Rejected
from trecexam.line.dropped_files import Dropped, read_dropped
from trecexam.line.dropped_runs import RunContent
from trecexam.tables.text import plural, shorten_list
from trecexam.track import TrackFolder

if TYPE_CHECKING:
    from converters.run import Run
    from trecexam.line.track_inputs import TrackInputs


@dataclass
class ChosenRuns:
    """The runs that are meant, out of those of a track and of files elsewhere.

    Attributes:
        named: names of runs of the track, or paths; none for all of the track.
        others: the runs of the track that are not meant, by name; known once `select_runs` was called.
    """

    folder: TrackFolder
    named: Sequence[str] = ()
    others: Mapping[str, Run] = field(default_factory=dict)

    def select_runs(self, track: TrackInputs) -> TrackInputs:
        """The inputs with these runs alone.

        Raises:
            TrecexamError: there is no such run, or two have one name.
            ConversionError: a file is no run.
        """
        if not track.bank.query_ids:
            why = next((f": {row}" for row in track.rejected), "")
            raise TrecexamError(f"no gold outputs can be read{why}", path=track.bank_files[0])
        if not track.runs and not self.named:
            dropped = {self.folder.shown(path) for path in self.folder.run_files()}
            why = next((f": {row}" for row in track.rejected if row.file in dropped), "")
            raise TrecexamError(
                f"no run to evaluate{why}; put runs into the drop folder, or name files with --run",
                path=self.folder.root,
            )
        if not self.named:
            return track
        runs: dict[str, Run] = {}
        files: dict[str, Path] = {}
        contents: dict[str, RunContent] = {}
        texts = dict(track.own_texts)
        for name in dict.fromkeys(self.named):
            own = self._own(name, track)
            if own is not None:
                runs[own], files[own] = track.runs[own], track.run_files[own]
                contents[own] = track.run_contents[own]
                continue
            path = Path(name)
            read = self._read(path, track)
            called = read.run.name
            if called in runs:
                called = path.name.removesuffix(".gz").removesuffix(".run")
            if called in runs:
                raise TrecexamError(f"another run is called '{called}': rename the file", path=path)
            runs[called], files[called] = read.run.renamed(called), path
            contents[called] = RunContent(path, None)
            texts.update(read.texts)
        self.others = {name: run for name, run in track.runs.items() if name not in runs}
        other_files = {self.folder.shown(path) for path in self.folder.run_files()} - {
            self.folder.shown(path) for path in files.values()
        }
        unknown = [
            left_out(self.folder.shown(files[name]), run.query_ids, track.bank.items, "without gold outputs")
            for name, run in runs.items()
            if files[name] != track.run_files.get(name)
        ]
        rejected = [row for row in track.rejected if row.file not in other_files]
        return replace(
            track,
            runs=dict(sorted(runs.items())),
            run_files=files,
            run_contents=contents,
            own_texts=texts,
            rejected=(*rejected, *(row for row in unknown if row is not None)),
        )

    def _own(self, name: str, track: TrackInputs) -> str | None:
        """The name of a run of the track, given as that, by its file, or by the file's name in the track."""
        if name in track.runs:
            return name
        for run, path in track.run_files.items():
            with suppress(OSError):
                if path.samefile(name):
                    return run
        if Path(name).exists():
            return None
        called = [run for run, path in track.run_files.items() if name in self._names(path)]
        return called[0] if len(called) == 1 else None

    def _names(self, path: Path) -> frozenset[str]:
        """What a file of the drop folder may be called: with folder and endings, or without."""
        inside = path.relative_to(self.folder.runs).as_posix()
        plain = inside.removesuffix(".gz")
        return frozenset((self.folder.shown(path), inside, plain, plain.removesuffix(Path(plain).suffix)))

    def _read(self, path: Path, track: TrackInputs) -> Dropped:
        if not path.is_file():
            hint = did_you_mean(str(path), track.runs, f"it has {', '.join(track.runs) or 'none'}")
            read = set(track.run_files.values())
            lost = {self.folder.shown(file) for file in self.folder.run_files() if file not in read}
            hint += next((f" (not taken: {row})" for row in track.rejected if row.file in lost), "")
            raise TrecexamError(f"no run '{path}' in the track, and no such file; {hint}")
        settings = self.folder.config.track
        return read_dropped(
            path, settings.pool, track.query_texts, unit=settings.unit, strict=settings.strict
        )


def left_out(file: str, query_ids: Collection[str], known: Collection[str], why: str) -> Rejected | None:
    """That these queries of a file, as far as they are not known, were left out; None where all are known."""
    unknown = [query_id for query_id in query_ids if query_id not in known]
    if not unknown:
        return None
    shown = shorten_list(unknown, dots=True)
    some = f"{len(unknown):,} of its {plural(len(query_ids), 'query')}"
    return Rejected(file, None, f"{some} {why}, left out: {shown}", "cell")


def refused_lines(file: str, errors: Iterable[ConversionError]) -> tuple[Rejected, ...]:
    """The lines of a file that were not taken; those with the same reason are one row, at the first."""
    alike: dict[str, list[ConversionError]] = {}
    for error in sorted(errors, key=lambda error: error.line or 0):
        alike.setdefault(error.reason, []).append(error)
    return tuple(
        Rejected(
            file,
            first.line or 0,
            f"{reason} ({1 + len(more):,} such lines)" if more else reason,
            first.lost,
        )
        for reason, (first, *more) in alike.items()
    )


def counted_queries(
    folder: TrackFolder, track: TrackInputs, others: Iterable[Run] = ()
) -> tuple[list[str], Rejected | None]:
    """The gold queries that the track knows: those of its queries' file or dataset, and those of its runs.

    Args:
        others: runs of the track that are not evaluated.

    Returns:
        They, sorted; and what is said of the others.
    """
    known = set(track.own_queries)
    for run in (*track.runs.values(), *others):
        known.update(run.query_ids)
    file = folder.shown(track.bank_files[0]) if len(track.bank_files) == 1 else "the bank"
    golds = track.bank.query_ids
    return [q for q in golds if q in known], left_out(file, golds, known, "not in the track")


def tied_runs(runs: Mapping[str, Run], query_ids: Iterable[str]) -> Iterator[str]:
    """A line for each run whose scores are all the same in each of these queries: it says no order itself.

    Scores are compared in single precision, as trec_eval 9 does. Queries with one document say nothing.
    """
    ids = list(query_ids)
    for name, run in runs.items():
        spans = [run.spans[query_id] for query_id in ids if query_id in run.spans]
        several = [run.scores[start:end].astype(np.float32) for start, end in spans if end - start > 1]
        if several and all((scores == scores[0]).all() for scores in several):
            yield (
                f"run '{name}': all scores of a query are the same, so its documents stand in trec_eval's "
                "order of ties, by falling docid; give each a score that falls with its rank"
            )


def lists(track: TrackInputs, query_ids: Iterable[str], depth: int | None) -> Ranked:
    """The runs' lists to this depth, None for all of them."""
    ids = list(query_ids)
    return {
        name: {query_id: run.ranking(query_id, depth) for query_id in ids} for name, run in track.runs.items()
    }
