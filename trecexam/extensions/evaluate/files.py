"""Evaluates run files on a qrels file, without a track."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import converters
from trecexam.errors import TrecexamError
from trecexam.features.leaderboard.outputs import per_query_table
from trecexam.line.cautions import label_cautions, skipping_cautions
from trecexam.line.dropped_runs import name_runs
from trecexam.line.evaluation import on_qrels
from trecexam.line.measure_names import names_of
from trecexam.line.measures import order_cautions
from trecexam.line.official import Official, unjudged_note
from trecexam.line.sources import provenance_notes
from trecexam.scores.evaluate import measure
from trecexam.scores.leaderboard import Leaderboard, leaderboard
from trecexam.scores.values import MeasureValues
from trecexam.tables.result import Result
from trecexam.tables.table import Table
from trecexam.tables.text import shorten_list

if TYPE_CHECKING:
    from trecexam.line.measure_names import MeasureLike


@dataclass(frozen=True)
class EvaluatedFiles(Result):
    """Runs evaluated on a qrels file: means over all its queries, best first, and values per query.

    Attributes:
        board: the means.
        values: the values, query by query.
        rejected: why a run was rejected, one per line.
        notes: what was rejected, and what else one ought to know.
        per_query: whether it is the values that are shown, not the means.
    """

    board: Leaderboard
    values: MeasureValues
    rejected: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    per_query: bool = False

    def declare(self) -> dict[str, Table]:
        """The leaderboard, or a row a run, query and measure."""
        if self.per_query:
            return {"per_query": per_query_table(self.values, self.values.measures)}
        return dict(self.board.tables)

    def json_value(self) -> dict[str, Any]:
        """The leaderboard's JSON, or the values."""
        value = super().json_value() if self.per_query else self.board.json_value()
        return value | {"notes": list(self.notes)}


def evaluate_files(
    qrels: Path, runs: Sequence[Path], measures: Sequence[MeasureLike], *, per_query: bool = False
) -> EvaluatedFiles:
    """Evaluates run files on a qrels file.

    Where a passage is judged several times for a query, once for each item or subtopic, Cover, nCover and the
    diversity measures take all its rows, and the others its best label.

    Args:
        measures: at least one; the first orders the runs.
        per_query: give the values of each query, in place of means.

    Raises:
        ConversionError: the qrels, or all runs, cannot be read.
        TrecexamError: a measure cannot be computed on these qrels.
    """
    rows = tuple(converters.read(qrels, "qrels"))
    query_ids = tuple(dict.fromkeys(row.query_id for row in rows))
    by_path, rejected = _read(runs)
    try:
        computed = [measure(name) for name in names_of(measures) or ()]
        evaluator = on_qrels(computed, rows, query_ids)
    except ValueError as error:
        raise TrecexamError(str(error), path=qrels) from None
    names = evaluator.names
    array = np.zeros((len(by_path), len(query_ids), len(names)))
    for of_run, run in zip(array, by_path.values(), strict=True):
        of_run[:] = evaluator.values(run)
    run_names = _names(by_path)
    values = MeasureValues(tuple(run_names.values()), query_ids, tuple(names), array)
    values = values.without_failed(evaluator.failures)
    answered = {run_names[path]: [q for q in query_ids if q in run] for path, run in by_path.items()}
    unanswered = tuple(
        f"{path}: {qrels} has none of its queries ({shorten_list(list(run.query_ids), 2, dots=True)})"
        for path, run in by_path.items()
        if not answered[run_names[path]]
    )
    skipping = skipping_cautions({run: len(of_run) for run, of_run in answered.items()}, len(query_ids))
    named = {run_names[path]: run for path, run in by_path.items()}
    judged = Official(str(qrels), rows).judged
    notes = (
        *values.failure_notes,
        *rejected,
        *order_cautions(named),
        *unanswered,
        *skipping,
        *provenance_notes(qrels),
        *(() if len(unanswered) == len(named) else unjudged_note(named, judged)),
        *label_cautions(rows, qrels, measures),
    )
    board = leaderboard(values, values.measures, query_ids, answered)
    files = {run_names[path]: str(path) for path in by_path}
    board = replace(board, rows=tuple(replace(row, file=files[row.run]) for row in board.rows))
    return EvaluatedFiles(board, values, rejected, notes, per_query)


def _read(paths: Sequence[Path]) -> tuple[dict[Path, converters.Run], tuple[str, ...]]:
    """Readable runs, and the reasons for the others."""
    runs: dict[Path, converters.Run] = {}
    errors = []
    for path in dict.fromkeys(paths):
        try:
            runs[path] = converters.read(path, "run")
        except converters.ConversionError as error:
            errors.append(error)
    if not runs and errors:
        raise errors[0]
    return runs, tuple(map(str, errors))


def _names(runs: Mapping[Path, converters.Run]) -> dict[Path, str]:
    """The name of each run, as if all were in one drop folder."""
    folder = Path(os.path.commonpath([path.absolute().parent for path in runs]))
    names = name_runs({path.absolute(): run.name for path, run in runs.items()}, folder)
    return {path: names[path.absolute()] for path in runs}
