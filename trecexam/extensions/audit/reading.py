"""Reading of runs and judgments into arrays, one run at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import compress, pairwise
from pathlib import Path

import numpy as np

import converters
from converters.arrow import strings
from converters.label_table import read_teams
from converters.unpacking import without_ending
from trecexam.errors import TrecexamError
from trecexam.extensions.audit.records import DEPTH, AuditInputs, Bools, Rows, Side
from trecexam.folder import files_in
from trecexam.inputs.dropped_runs import name_runs
from trecexam.inputs.official import judged_labels
from trecexam.inputs.sources import provenance_notes
from trecexam.results.text import plural, shorten_list
from trecexam.scores.columns import UNJUDGED, Judged, rows_at_ranks

#: query_id -> doc_id -> label
Labels = Mapping[str, Mapping[str, int]]


def read_inputs(
    qrels: Sequence[Path],
    runs: Sequence[Path],
    teams: Path | None = None,
    judge_run: Path | None = None,
    cutoff: int = 10,
) -> AuditInputs:
    """Read runs and one or two sets of judgments.

    Queries are judged in all sets and present in some run; a run without a query has an empty list for it.

    Args:
        runs: files, or folders to search.
        teams: a file of `run<TAB>team` lines.
        judge_run: the judge's own ranking, a run file.
        cutoff: k of nDCG@k, 1 to `DEPTH`.

    Raises:
        ConversionError: a set of judgments, the teams, the judge's run, or every run cannot be read.
        TrecexamError: neither one nor two sets; no run; no shared query.
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
    reader = _Reader(_judged(labels, common)[0])
    for path in dict.fromkeys(_run_files(runs, notes)):
        reader.add(path)
    if not reader.rows:
        for error in reader.rejected:
            raise error
        number = plural(len(common), "judged query")
        raise TrecexamError(f"no run ranks anything for the {number}: check --runs")
    judge_ranking = None
    if judge_run is not None:
        run = converters.read(judge_run, "run")
        judge_ranking = run.name, reader.rows_of(run)
    all_rows, tags = np.stack(reader.rows), reader.tags
    answered = np.asarray((all_rows >= 0).any(axis=(0, 2)))
    if not answered.all():
        number = plural(int((~answered).sum()), "judged query")
        notes.append(f"left out {number} for which no run ranks anything")
    moved = reader.moved_rows(answered)
    judged, rows = _judged(labels, list(compress(common, answered))), moved[all_rows[:, answered]]
    named = name_runs(tags, Path(os.path.commonpath([path.parent for path in tags])))
    names = [named[path] for path in tags]
    team_of = {} if teams is None else read_teams(teams)
    if team_of and (without := [name for name in names if name not in team_of]):
        notes.append(
            f"{teams}: no team for {shorten_list(without)}; each of these counts as a team of one run"
        )
    if (skipped := (rows < 0).all(axis=2).sum(axis=1)).any():
        some = [name for name, n in zip(names, skipped, strict=True) if n]
        notes.append(
            f"{shorten_list(some)}: skipped up to {plural(int(skipped.max()), 'query')}; a skipped query "
            "scores 0"
        )
    short = [without_ending(path.name).rsplit(".", 1)[0] for path in qrels]
    if len(set(short)) < len(short):
        short = [f"{name} ({number})" for number, name in enumerate(short, 1)]
    unjudged = np.full(len(reader.others) + 1, UNJUDGED, np.int32)
    return AuditInputs(
        tuple(names),
        tuple(team_of.get(name, name) for name in names),
        judged[0].query_ids,
        tuple(
            Side(name, each, np.append(each.labels, unjudged))
            for name, each in zip(short, judged, strict=True)
        ),
        rows,
        cutoff,
        None if judge_ranking is None else (judge_ranking[0], moved[judge_ranking[1][answered]]),
        (*notes, *reader.notes),
        tuple(map(str, reader.rejected)),
        "" if larger is None else short[larger],
    )


def _larger(qrels: Sequence[Path], labels: Sequence[Labels], notes: list[str]) -> int | None:
    """Return the index of the file that contains the other's labels, and add a note; None if neither does."""
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


def _run_files(paths_given: Iterable[Path], notes: list[str]) -> Iterator[Path]:
    """Yield the run files; from a folder, files named .run and files of no other known format.

    `notes` names the files left out.
    """
    for path_given in paths_given:
        for path in files_in(path_given) if path_given.is_dir() else (path_given,):
            kind = "run"
            if path != path_given and not without_ending(path.name).endswith(".run"):
                with suppress(converters.ConversionError):
                    kind = converters.sniff(path)
            if kind == "run":
                yield path
            else:
                notes.append(f"{path}: left out; it looks like {kind}, not like a run")


def _judged(labels: Sequence[Labels], query_ids: Sequence[str]) -> list[Judged]:
    """Return the passages judged by any side, with the labels of each side."""
    docs = [sorted(set().union(*(side[query] for side in labels))) for query in query_ids]
    offsets = np.cumsum([0, *map(len, docs)]).astype(np.int64)
    doc_ids = strings([doc for of_query in docs for doc in of_query])
    pairs = [(query, doc) for query, of_query in zip(query_ids, docs, strict=True) for doc in of_query]
    return [
        Judged(
            tuple(query_ids),
            offsets,
            doc_ids,
            np.array([side[query].get(doc, UNJUDGED) for query, doc in pairs], np.int32),
        )
        for side in labels
    ]


class _Reader:
    """Reader of runs as row indices of passages: judged passages first, then others in the first ranks."""

    def __init__(self, union: Judged) -> None:
        self._union = union
        self.others: dict[tuple[int, str], int] = {}
        self.tags: dict[Path, str] = {}
        self.rejected: list[converters.ConversionError] = []
        self.notes: list[str] = []
        self.rows: list[Rows] = []

    def add(self, path: Path) -> None:
        """Read a run, or add a note with the reason for skipping it."""
        query_ids = self._union.query_ids
        try:
            run = converters.read(path, "run")
        except converters.ConversionError as error:
            looks_like = ""
            with suppress(converters.ConversionError):
                looks_like = converters.sniff(path)
            if looks_like == "qrels":
                reason = f"{error.reason}; the file looks like qrels: is --qrels meant?"
                error = converters.ConversionError(error.path, error.line, reason)
            self.rejected.append(error)
            return
        if set(query_ids).isdisjoint(run.query_ids):
            number = plural(len(query_ids), "judged query")
            self.notes.append(f"{path}: left out; it ranks nothing for the {number}")
            return
        self.tags[path.absolute()] = run.name
        self.rows.append(self.rows_of(run))

    def rows_of(self, run: converters.Run) -> Rows:
        """Return the rows at the first ranks, -1 beyond the end; shape (queries, DEPTH)."""
        union = self._union
        ranked = rows_at_ranks(run, union, DEPTH)
        rows = np.full((len(union.query_ids), DEPTH), -1, np.int32)
        for query, (start, end) in enumerate(pairwise(ranked.offsets.tolist())):
            first = ranked.rows[start:end]
            rows[query, : len(first)] = first
            unjudged = np.flatnonzero(first < 0).tolist()
            docs = run.ranking(union.query_ids[query], DEPTH) if unjudged else ()
            for rank in unjudged:
                new = len(union.labels) + len(self.others)
                rows[query, rank] = self.others.setdefault((query, docs[rank]), new)
        return rows

    def moved_rows(self, chosen: Bools) -> Rows:
        """Return new row indices after restricting judgments to these queries; row -1 stays -1."""
        stays = np.repeat(chosen, np.diff(self._union.offsets))
        stays = np.append(stays, np.ones(len(self.others), bool))
        return np.append(np.cumsum(stays) - 1, -1).astype(np.int32)
