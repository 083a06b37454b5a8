"""Selects runs, queries and depth."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from converters.errors import ConversionError
from trecexam.errors import TrecexamError, did_you_mean
from trecexam.extensions.erag.labels import Ranked
from trecexam.files.stamps import Rejected
from trecexam.tables.text import plural, shorten_list
from trecexam.track import TrackFolder

if TYPE_CHECKING:
    from converters.run import Run
    from trecexam.line.track_inputs import TrackInputs


@dataclass
class ChosenRuns:
    """The selected runs of a track.

    Attributes:
        named: names of runs of the track; none for all.
        others: the runs that are not meant, by name; known once `select_runs` was called.
    """

    folder: TrackFolder
    named: Sequence[str] = ()
    others: Mapping[str, Run] = field(default_factory=dict)

    def select_runs(self, track: TrackInputs) -> TrackInputs:
        """The inputs with only these runs.

        Raises:
            TrecexamError: there is no such run, or none at all.
        """
        if not track.bank.query_ids:
            why = next((f": {row}" for row in track.rejected), "")
            raise TrecexamError(f"no gold outputs can be read{why}", path=track.bank_files[0])
        read = set(track.run_files.values())
        lost = {self.folder.shown(path) for path in self.folder.run_files() if path not in read}
        why = next((f" (rejected: {row})" for row in track.rejected if row.file in lost), "")
        if not track.runs:
            raise TrecexamError(
                f"no run to evaluate in {self.folder.shown(self.folder.runs)}{why}", path=self.folder.root
            )
        for name in self.named:
            if name not in track.runs:
                hint = did_you_mean(name, track.runs, f"it has {', '.join(track.runs)}")
                raise TrecexamError(f"no run '{name}' in the track; {hint}{why}")
        if not self.named:
            return track
        names = sorted({*self.named})
        self.others = {name: run for name, run in track.runs.items() if name not in names}
        other_files = {self.folder.shown(track.run_files[name]) for name in self.others} | lost
        return replace(
            track,
            runs={name: track.runs[name] for name in names},
            run_files={name: track.run_files[name] for name in names},
            run_contents={name: track.run_contents[name] for name in names},
            rejected=tuple(row for row in track.rejected if row.file not in other_files),
        )


def left_out(file: str, query_ids: Collection[str], known_ids: Collection[str], why: str) -> Rejected | None:
    """A row that says that unknown queries of a file were left out; None if all are known."""
    unknown = [query_id for query_id in query_ids if query_id not in known_ids]
    if not unknown:
        return None
    unknown_text = shorten_list(unknown, dots=True)
    some = f"{len(unknown):,} of its {plural(len(query_ids), 'query')}"
    return Rejected(file, None, f"{some} {why}, left out: {unknown_text}", "line")


def refused_lines(file: str, errors: Iterable[ConversionError]) -> tuple[Rejected, ...]:
    """The rejected lines of a file; lines with the same reason are one row, at the first."""
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
    folder: TrackFolder, track: TrackInputs, other_runs: Iterable[Run] = ()
) -> tuple[list[str], Rejected | None]:
    """The queries with gold outputs that are in the track's queries or runs.

    Args:
        other_runs: runs of the track that are not evaluated.

    Returns:
        They, sorted; and a note about the others.
    """
    known_ids = set(track.own_queries)
    for run in (*track.runs.values(), *other_runs):
        known_ids.update(run.query_ids)
    file = folder.shown(track.bank_files[0]) if len(track.bank_files) == 1 else "the bank"
    golds = track.bank.query_ids
    return [q for q in golds if q in known_ids], left_out(file, golds, known_ids, "not in the track")


def tied_runs(runs: Mapping[str, Run], query_ids: Iterable[str]) -> Iterator[str]:
    """Yield a warning for each run whose scores are all equal in each of these queries.

    Queries with one document say nothing.
    """
    ids = list(query_ids)
    for name, run in runs.items():
        spans = [run.spans[query_id] for query_id in ids if query_id in run.spans]
        several = [run.scores[start:end] for start, end in spans if end - start > 1]
        if several and all((scores == scores[0]).all() for scores in several):
            yield (
                f"run '{name}': all scores of a query are the same, so trec_eval's rule for ties orders its "
                f"documents, by docid descending; give each document a score that decreases with its rank"
            )


def lists(track: TrackInputs, query_ids: Iterable[str], depth: int | None = None) -> Ranked:
    """The runs' lists to this depth, None for all of them."""
    ids = list(query_ids)
    return {
        name: {query_id: run.ranking(query_id, depth) for query_id in ids} for name, run in track.runs.items()
    }
