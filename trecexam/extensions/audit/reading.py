"""Reading of runs and judgments into arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

import converters
from converters.errors import ConversionError
from converters.label_table import read_teams
from converters.records import Qrel
from converters.run import Run
from converters.unpacking import file_label, without_ending
from trecexam.errors import TrecexamError
from trecexam.extensions.audit.records import DEPTH, AuditInputs, Rows, Side
from trecexam.files.stamps import sniffed
from trecexam.folder import files_in
from trecexam.inputs.dropped_runs import name_runs
from trecexam.inputs.official import judged_labels
from trecexam.inputs.sources import provenance_notes
from trecexam.results.text import plural, shorten_list
from trecexam.scores.columns import UNJUDGED, Judged, rows_at_ranks, run_of

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
    larger = _larger(qrels, labels, notes) if len(qrels) == 2 else None
    rejected: list[ConversionError] = []
    ranked = _read_runs(runs, common, notes, rejected)
    if not ranked:
        for error in rejected:
            raise error
        number = plural(len(common), "judged query")
        raise TrecexamError(f"no run ranks anything for the {number}: check --runs")
    answered = set[str]().union(*(run.query_ids for run in ranked.values()))
    query_ids = [query for query in common if query in answered]
    if unanswered := len(common) - len(query_ids):
        notes.append(f"left out {plural(unanswered, 'judged query')} for which no run ranks anything")
    of_judge = None if judge_run is None else _first_ranks(converters.read(judge_run, "run"), query_ids)
    judged = _judged(labels, query_ids, [*ranked.values(), *filter(None, [of_judge])])
    rows = np.stack([_rows(run, judged[0]) for run in ranked.values()])
    tags = {path: run.name for path, run in ranked.items()}
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
    short = [file_label(path.name) for path in qrels]
    if len(set(short)) < len(short):
        short = [f"{name} ({number})" for number, name in enumerate(short, 1)]
    return AuditInputs(
        np.array(names, object),
        np.array([team_of.get(name, name) for name in names], object),
        tuple(map(Side, short, judged)),
        rows,
        cutoff,
        None if of_judge is None else (of_judge.name, _rows(of_judge, judged[0])),
        tuple(notes),
        tuple(map(str, rejected)),
        "" if larger is None else short[larger],
    )


def _larger(qrels: Sequence[Path], labels: Sequence[Labels], notes: list[str]) -> int | None:
    """Return the index of the file that contains the other's labels, and add a note; None if neither does."""
    for small, large in ((0, 1), (1, 0)):
        if all(docs.items() <= labels[large].get(query, {}).items() for query, docs in labels[small].items()):
            number = plural(sum(map(len, labels[small].values())), "label")
            contained = f"{qrels[large]} contains all {number} of {qrels[small]}"
            notes.append(f"{contained}, so that their agreement says nothing")
            return large
    return None


def _read_runs(
    paths: Iterable[Path], query_ids: Sequence[str], notes: list[str], rejected: list[ConversionError]
) -> dict[Path, Run]:
    """Return the first ranks of each run file for these queries.

    Of a folder's files those count that are named .run or look like no other format. `notes` and `rejected`
    get the files left out.
    """
    files = {
        path: given.is_dir() and not without_ending(path.name).endswith(".run")
        for given in paths
        for path in (files_in(given) if given.is_dir() else (given,))
    }
    ranked: dict[Path, Run] = {}
    for path, may_be_other in files.items():
        kind = sniffed(path)
        if may_be_other and kind not in (None, "run"):
            notes.append(f"{path}: left out; it looks like {kind}, not like a run")
            continue
        try:
            run = _first_ranks(converters.read(path, "run"), query_ids)
        except ConversionError as error:
            hint = "; the file looks like qrels: is --qrels meant?" if kind == "qrels" else ""
            rejected.append(ConversionError(error.path, error.line, f"{error.reason}{hint}"))
            continue
        if len(run):
            ranked[path.absolute()] = run
        else:
            number = plural(len(query_ids), "judged query")
            notes.append(f"{path}: left out; it ranks nothing for the {number}")
    return ranked


def _first_ranks(run: Run, query_ids: Iterable[str]) -> Run:
    """Return the first `DEPTH` ranks of a run for these queries."""
    rankings = {query: run.ranking(query, DEPTH) for query in query_ids if query in run}
    return run_of(rankings).renamed(run.name)


def _judged(labels: Sequence[Labels], query_ids: Sequence[str], runs: Sequence[Run]) -> list[Judged]:
    """Return the passages of all sides and runs, with the labels of each side."""
    docs = {
        query: set[str]().union(*(side[query] for side in labels), *(run.ranking(query) for run in runs))
        for query in query_ids
    }
    return [
        Judged.from_qrels(
            Qrel(query, doc, side[query].get(doc, UNJUDGED))
            for query, of_query in docs.items()
            for doc in of_query
        )
        for side in labels
    ]


def _rows(run: Run, judged: Judged) -> Rows:
    """Return the rows at the first ranks, -1 beyond the end; shape (queries, DEPTH)."""
    ranked = rows_at_ranks(run, judged)
    rows = np.full((len(judged.query_ids), DEPTH), -1, np.int32)
    rows[np.arange(DEPTH) < np.diff(ranked.offsets)[:, None]] = ranked.rows
    return rows
