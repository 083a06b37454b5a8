"""Selects queries and depth."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from converters.errors import ConversionError
from converters.run import Run
from trecexam.errors import TrecexamError
from trecexam.extensions.erag.labels import Ranked
from trecexam.files.stamps import Rejected
from trecexam.folder import TrackFolder
from trecexam.results.text import plural, shorten_list

if TYPE_CHECKING:
    from trecexam.inputs.inputs import TrackInputs


def check_runs(folder: TrackFolder, track: TrackInputs) -> None:
    """Refuse a track without gold outputs or without a run.

    Raises:
        TrecexamError: there are none, and why.
    """
    if not track.bank.query_ids:
        why = next((f": {row}" for row in track.rejected), "")
        raise TrecexamError(f"no gold outputs can be read{why}", path=track.bank_files[0])
    if not track.runs:
        files = {folder.shown(path) for path in folder.run_files()}
        why = next((f" (rejected: {row})" for row in track.rejected if row.file in files), "")
        raise TrecexamError(f"no run to evaluate in {folder.shown(folder.runs)}{why}", path=folder.root)


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


def counted_queries(folder: TrackFolder, track: TrackInputs) -> tuple[list[str], Rejected | None]:
    """The queries with gold outputs that are in the track's queries or runs.

    Returns:
        They, sorted; and a note about the others.
    """
    known_ids = set(track.own_queries)
    for run in track.runs.values():
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
