"""Reads runs and judgments into arrays, one run at a time."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

import converters
from converters.arrow import strings
from converters.label_table import read_teams
from converters.unpacking import without_ending
from trecexam.errors import TrecexamError
from trecexam.extensions.audit.records import DEPTH, AuditInputs, Rows, Side
from trecexam.inputs.dropped_runs import name_runs
from trecexam.inputs.official import judged_labels
from trecexam.inputs.sources import provenance_notes
from trecexam.results.text import plural, shorten_list
from trecexam.scores.columns import UNJUDGED, Judged, Ranked, rows_at_ranks

#: query_id -> doc_id -> label
Labels = Mapping[str, Mapping[str, int]]


def read_inputs(
    qrels: Sequence[Path],
    runs: Sequence[Path],
    teams: Path | None = None,
    judge_run: Path | None = None,
    cutoff: int = 10,
) -> AuditInputs:
    """Runs and one or two sets of judgments.

    Queries are those that all sets judge and some run has; a run that skips one of them has an empty list.

    Args:
        runs: files, or folders that are searched through.
        teams: a file of `run<TAB>team` lines.
        judge_run: the judge's own ranking, a run file.
        cutoff: k of nDCG@k, 1 to `DEPTH`.

    Raises:
        ConversionError: a set of judgments, the teams, the judge's run, or every run cannot be read.
        TrecexamError: neither one nor two sets; no run; no query that all have.
    """
    if len(qrels) not in (1, 2):
        raise TrecexamError(f"{len(qrels)} --qrels were given: give one or two")
    labels = [judged_labels(converters.read(path, "qrels")) for path in qrels]
    common = sorted(set.intersection(*map(set, labels)))
    if not common:
        raise TrecexamError("the two --qrels have no query in common: are both files for the same track?")
    notes = [line for path in qrels for line in provenance_notes(path)]
    notes += [
        f"{path}: left out {plural(len(of_side) - len(common), 'query')} that the other set does not judge"
        for path, of_side in zip(qrels, labels, strict=True)
        if len(of_side) > len(common)
    ]
    larger = _larger(qrels, labels, notes) if len(labels) == 2 else None
    files = list(dict.fromkeys(_run_files(runs, notes)))
    with _each_warning_once():
        reader = _Reader(labels, common, files)
        missing = [query for query in common if query not in reader.answered]
        if missing and reader.names:
            reader = _Reader(labels, [query for query in common if query in reader.answered], files)
    if not reader.names:
        for error in reader.rejected:
            raise error
        raise TrecexamError(
            f"no run ranks anything for the {plural(len(common), 'judged query')}: check --runs"
        )
    if missing:
        notes.append(f"left out {plural(len(missing), 'judged query')} for which no run ranks anything")
    judge_ranking = None if judge_run is None else converters.read(judge_run, "run")
    judge_rows = None if judge_ranking is None else (judge_ranking.name, reader.rows_of(judge_ranking)[0])
    named = name_runs(reader.names, Path(os.path.commonpath([path.parent for path in reader.names])))
    names = [named[path] for path in reader.names]
    team_of = {} if teams is None else read_teams(teams)
    if team_of and (without := [name for name in names if name not in team_of]):
        notes.append(
            f"{teams}: no team for {shorten_list(without)}; each of these counts as a team of one run"
        )
    rows = np.stack(reader.rows)
    if (skipped := (rows < 0).all(axis=2).sum(axis=1)).any():
        some = [name for name, n in zip(names, skipped, strict=True) if n]
        notes.append(
            f"{shorten_list(some)}: skipped up to {plural(int(skipped.max()), 'query')}; a skipped query "
            "scores 0"
        )
    short = [without_ending(path.name).rsplit(".", 1)[0] for path in qrels]
    if len(set(short)) < len(short):
        short = [f"{name} ({number})" for number, name in enumerate(short, 1)]
    return AuditInputs(
        tuple(names),
        tuple(team_of.get(name, name) for name in names),
        tuple(reader.query_ids),
        reader.sides(short),
        rows,
        cutoff,
        judge_rows,
        (*notes, *reader.notes),
        tuple(map(str, reader.rejected)),
        "" if larger is None else short[larger],
    )


@contextmanager
def _each_warning_once() -> Iterator[None]:
    """Log each warning about a file once, though a run may be read several times."""
    seen: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        n_seen = len(seen)
        seen.add(record.getMessage())
        return len(seen) > n_seen

    logger = logging.getLogger("converters")
    logger.addFilter(is_new)
    try:
        yield
    finally:
        logger.removeFilter(is_new)


def _larger(qrels: Sequence[Path], labels: Sequence[Labels], notes: list[str]) -> int | None:
    """Return the index of the file that contains the other's labels, with a note; None where neither does."""
    flat = [
        {(query, doc): label for query, docs in side.items() for doc, label in docs.items()}
        for side in labels
    ]
    small, large = sorted((0, 1), key=lambda index: len(flat[index]))
    if not flat[small].items() <= flat[large].items():
        return None
    notes.append(
        f"{qrels[large]} contains all {plural(len(flat[small]), 'label')} of {qrels[small]}, so that their "
        "agreement says nothing"
    )
    return large


def _with_kind(error: converters.ConversionError, path: Path) -> converters.ConversionError:
    """The error, with the format that the file looks like if that is not a run."""
    with suppress(converters.ConversionError):
        if (kind := converters.sniff(path)) != "run":
            hint = ": is --qrels meant?" if kind == "qrels" else ""
            reason = f"{error.reason}; the file looks like {kind}{hint}"
            return converters.ConversionError(error.path, error.line, reason)
    return error


def _run_files(paths_given: Iterable[Path], notes: list[str]) -> Iterator[Path]:
    """The run files; from a folder those named .run and those that look like no other format.

    `notes` names the files left out.
    """
    for path_given in paths_given:
        inside = sorted(path_given.rglob("*")) if path_given.is_dir() else [path_given]
        for path in inside:
            kind = "run"
            if path != path_given and not without_ending(path.name).endswith(".run"):
                with suppress(converters.ConversionError):
                    kind = converters.sniff(path) if path.is_file() and path.name[0] != "." else ""
            if kind == "run":
                yield path
            elif kind:
                notes.append(f"{path}: left out; it looks like {kind}, not like a run")


class _Reader:
    """Runs as row indices of passages: first the judged passages, then others in the first ranks."""

    def __init__(self, labels: Sequence[Labels], query_ids: Sequence[str], files: Sequence[Path]) -> None:
        self.query_ids = query_ids
        docs = [sorted(set().union(*(side[query] for side in labels))) for query in query_ids]
        offsets = np.cumsum([0, *map(len, docs)]).astype(np.int64)
        doc_ids = strings([doc for of_query in docs for doc in of_query])
        self._judged = [
            Judged(tuple(query_ids), offsets, doc_ids, np.array(of_side, np.int32))
            for of_side in (
                [
                    side[query].get(doc, UNJUDGED)
                    for query, of_query in zip(query_ids, docs, strict=True)
                    for doc in of_query
                ]
                for side in labels
            )
        ]
        self._others: dict[tuple[int, str], int] = {}
        self.names: dict[Path, str] = {}
        self.rejected: list[converters.ConversionError] = []
        self.notes: list[str] = []
        self.rows: list[Rows] = []
        self._condensed: list[list[Rows]] = []
        self.answered: set[str] = set()
        for path in files:
            self._add(path)

    def _add(self, path: Path) -> None:
        try:
            run = converters.read(path, "run")
        except converters.ConversionError as error:
            self.rejected.append(_with_kind(error, path))
            return
        if set(self.query_ids).isdisjoint(run.query_ids):
            self.notes.append(
                f"{path}: left out; it ranks nothing for the {plural(len(self.query_ids), 'judged query')}"
            )
            return
        rows, condensed = self.rows_of(run)
        self.names[path.absolute()] = run.name
        self.answered.update(run.query_ids)
        self.rows.append(rows)
        self._condensed.append(condensed)

    def rows_of(self, run: converters.Run) -> tuple[Rows, list[Rows]]:
        """The rows at the first ranks, shape (queries, DEPTH), and for each side its first judged "
        "passages."""
        union = self._judged[0]
        ranked = rows_at_ranks(run, union)
        rows = _first(ranked, np.arange(ranked.offsets[-1]))
        is_ranked = np.arange(DEPTH) < np.diff(ranked.offsets)[:, None]
        for query in np.flatnonzero((is_ranked & (rows < 0)).any(axis=1)).tolist():
            docs = run.ranking(union.query_ids[query], DEPTH)
            for rank in np.flatnonzero(is_ranked[query] & (rows[query] < 0)).tolist():
                new = len(union.labels) + len(self._others)
                rows[query, rank] = self._others.setdefault((query, docs[rank]), new)
        condensed = [
            _first(ranked, np.flatnonzero(side.padded_labels[ranked.rows] >= 0)) for side in self._judged
        ]
        return rows, condensed

    def sides(self, names: Sequence[str]) -> tuple[Side, ...]:
        """The sets of judgments, once all runs are read."""
        unjudged_labels = np.full(len(self._others) + 1, UNJUDGED, np.int32)
        return tuple(
            Side(name, judged, np.concatenate([judged.labels, unjudged_labels]), np.stack(of_runs))
            for name, judged, of_runs in zip(
                names, self._judged, zip(*self._condensed, strict=True), strict=True
            )
        )


def _first(ranked: Ranked, entry_indices: np.ndarray) -> Rows:
    """Each query's rows at the first `DEPTH` of these positions; -1 beyond the end."""
    query = np.searchsorted(ranked.offsets, entry_indices, side="right") - 1
    counts = np.bincount(query, minlength=len(ranked.offsets) - 1)
    rank = np.arange(len(entry_indices)) - (np.cumsum(counts) - counts)[query]
    rows = np.full((len(counts), DEPTH), -1, np.int32)
    first = rank < DEPTH
    rows[query[first], rank[first]] = ranked.rows[entry_indices[first]]
    return rows
