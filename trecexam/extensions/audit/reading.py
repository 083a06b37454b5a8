"""Reads runs and judgments into arrays, one run at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

import converters
from converters.arrow import column, numbers
from converters.label_table import read_teams
from trecexam.errors import TrecexamError
from trecexam.extensions.audit.records import DEPTH, AuditInputs, Labels, Side
from trecexam.line.dropped_runs import name_runs
from trecexam.scores.columns import UNJUDGED, Judged, rows_at_ranks
from trecexam.scores.columns.ranked import Ranked
from trecexam.tables.text import plural, shorten_list


def read_inputs(
    qrels: Sequence[Path],
    runs: Sequence[Path],
    *,
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
        raise TrecexamError(f"{len(qrels)} sets of judgments: give one or two with --qrels")
    sides = [Judged.from_qrels(converters.read(path, "qrels")) for path in qrels]
    common = [query for query in sides[0].query_ids if all(query in side.query_ids for side in sides)]
    if not common:
        raise TrecexamError("no query is judged by both sets of judgments: are these of one track?")
    notes = [
        f"{path}: {plural(len(side.query_ids) - len(common), 'query')} that the other set does not judge "
        "left out"
        for path, side in zip(qrels, sides, strict=True)
        if len(side.query_ids) > len(common)
    ]
    union, labels = _joined(sides, common)
    reader = _Rows(union, labels)
    paths, rejected = [], []
    tags, top, condensed = {}, [], []
    for path in _run_files(runs):
        try:
            run = converters.read(path, "run")
        except converters.ConversionError as error:
            rejected.append(error)
            continue
        rows, judged_rows = reader.of(run)
        if not (rows >= 0).any():
            notes.append(f"{path}: left out, since it has none of the {plural(len(common), 'judged query')}")
            continue
        paths.append(path)
        tags[path.absolute()] = run.name
        top.append(rows)
        condensed.append(judged_rows)
    if not paths and rejected:
        raise rejected[0]
    if not paths:
        raise TrecexamError("no run to audit: give run files, or a folder that has some, with --runs")
    judge_rows, judge_name = None, ""
    if judge_run is not None:
        run = converters.read(judge_run, "run")
        judge_rows, judge_name = reader.of(run)[0][:, :cutoff], run.name
    folder = Path(os.path.commonpath([path.parent for path in tags]))
    names = list(name_runs(tags, folder)[path] for path in tags)
    team_of = {} if teams is None else read_teams(teams)
    if teams is not None and (without := [name for name in names if name not in team_of]):
        notes.append(f"{teams}: no team for {shorten_list(without)}; each of these runs is a team of its own")
    rows, all_condensed = np.stack(top), np.stack(condensed, 1)
    made = AuditInputs(
        tuple(names),
        tuple(team_of.get(name, name) for name in names),
        bool(set(names) & team_of.keys()),
        tuple(common),
        tuple(
            Side(name, replace(union, labels=of_side), reader.extended(of_side), of_runs)
            for name, of_side, of_runs in zip(_side_names(qrels), labels, all_condensed, strict=True)
        ),
        rows,
        cutoff,
        judge_rows,
        judge_name,
    )
    retrieved = (rows >= 0).any(axis=2)
    if not (kept := retrieved.any(axis=0)).all():
        notes.append(f"{plural(int((~kept).sum()), 'judged query')} that no run has left out")
        made = _of_queries(made, kept)
    skipped = {name: int(n) for name, n in zip(names, (~retrieved[:, kept]).sum(axis=1), strict=True) if n}
    if skipped:
        worst = max(skipped.values())
        notes.append(f"{shorten_list(skipped)} skip up to {plural(worst, 'query')}; these count as 0 there")
    return replace(made, notes=tuple(notes), rejected=tuple(map(str, rejected)))


def _run_files(places: Iterable[Path]) -> Iterator[Path]:
    """The run files: each once, in the order of their names."""
    found: dict[Path, None] = {}
    for place in places:
        inside = sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else [place]
        found |= dict.fromkeys(
            path for path in inside if not path.name.startswith(".") and not (path.suffix == ".tsv")
        )
    yield from found


def _side_names(qrels: Sequence[Path]) -> list[str]:
    """Short names of the sets; their paths where they would be the same."""
    short = [path.name.removesuffix(".gz").rsplit(".", 1)[0] for path in qrels]
    return short if len(set(short)) == len(short) else list(map(str, qrels))


def _joined(sides: Sequence[Judged], common: Sequence[str]) -> tuple[Judged, list[Labels]]:
    """All passages that some side judged, and the labels of each side."""
    selected = [side.select(common) for side in sides]
    union = selected[0]
    if len(sides) == 2:
        rows = (
            converters.Qrel(query, doc_id, 0)
            for side in selected
            for query, start, end in zip(common, side.offsets[:-1], side.offsets[1:], strict=True)
            for doc_id in side.doc_ids[int(start) : int(end)].to_pylist()
        )
        union = Judged.from_qrels(rows, common)
    labels = []
    for side in selected:
        of_side = np.full(len(union.labels), UNJUDGED, np.int32)
        for place, lookup in enumerate(union.lookups):
            start, end = side.offsets[place : place + 2].tolist()
            if end > start:
                found = pc.get_function("index_in").call([side.doc_ids[start:end]], lookup)
                of_side[numbers(found) + union.offsets[place]] = side.labels[start:end]
        labels.append(of_side)
    return union, labels


class _Rows:
    """Rows of passages: those that are judged, then each other one that comes up in the first ranks."""

    def __init__(self, union: Judged, labels: Sequence[Labels]) -> None:
        self._union, self._labels = union, [np.append(of_side, np.int32(UNJUDGED)) for of_side in labels]
        self._others: dict[tuple[int, str], int] = {}

    def of(self, run: converters.Run) -> tuple[Labels, Labels]:
        """Rows at the first ranks, shape (queries, DEPTH); of each side those it judged, one shape more."""
        ranked = rows_at_ranks(run, self._union)
        lengths = np.diff(ranked.offsets)
        places = ranked.offsets[:-1, None] + np.arange(DEPTH)
        there = np.arange(DEPTH) < lengths[:, None]
        rows = np.full(there.shape, -1, np.int32)
        rows[there] = ranked.rows[places[there]]
        for query in np.flatnonzero((there & (rows < 0)).any(axis=1)).tolist():
            docs = run.ranking(self._union.query_ids[query], DEPTH)
            for rank in np.flatnonzero(there[query] & (rows[query] < 0)).tolist():
                new = len(self._union.labels) + len(self._others)
                rows[query, rank] = self._others.setdefault((query, docs[rank]), new)
        return rows, np.stack([_judged_rows(ranked, of_side) for of_side in self._labels])

    def extended(self, labels: Labels) -> Labels:
        """Labels of all rows, and of the one that stands for nothing."""
        return np.concatenate([labels, np.full(len(self._others) + 1, UNJUDGED, np.int32)])


def _judged_rows(ranked: Ranked, padded: Labels) -> Labels:
    """The first rows that have a label, of each query."""
    places = np.flatnonzero(padded[ranked.rows] != UNJUDGED)
    query = np.searchsorted(ranked.offsets, places, side="right") - 1
    counts = np.bincount(query, minlength=len(ranked.offsets) - 1)
    rank = np.arange(len(places)) - (np.cumsum(counts) - counts)[query]
    rows = np.full((len(counts), DEPTH), -1, np.int32)
    first = rank < DEPTH
    rows[query[first], rank[first]] = ranked.rows[places[first]]
    return rows


def _of_queries(inputs: AuditInputs, kept: np.ndarray) -> AuditInputs:
    """These queries alone; passages of the others keep their rows and lose their labels."""
    chosen = tuple(query for query, keep in zip(inputs.query_ids, kept, strict=True) if keep)
    union = inputs.sides[0].judged
    of_row = kept[union.query_of_row]
    moved = np.cumsum(of_row) - 1
    n_old, n_new = len(of_row), int(of_row.sum())

    def renumbered(rows: Labels) -> Labels:
        places = np.concatenate([moved, np.arange(n_new, n_new + len(inputs.sides[0].labels) - n_old)])
        return np.where(rows < 0, np.int32(-1), places[rows]).astype(np.int32)

    offsets = np.concatenate(([0], np.cumsum(np.diff(union.offsets)[kept]))).astype(np.int64)
    sides = []
    for side in inputs.sides:
        doc_ids = side.judged.doc_ids.take(column(np.flatnonzero(of_row)))
        judged = Judged(chosen, offsets, doc_ids, side.judged.labels[of_row])
        labels = np.concatenate([judged.labels, side.labels[n_old:]])
        sides.append(Side(side.name, judged, labels, renumbered(side.condensed[:, kept])))
    judge_rows = inputs.judge_rows
    return replace(
        inputs,
        query_ids=chosen,
        sides=tuple(sides),
        rows=renumbered(inputs.rows[:, kept]),
        judge_rows=None if judge_rows is None else renumbered(judge_rows[kept]),
    )
