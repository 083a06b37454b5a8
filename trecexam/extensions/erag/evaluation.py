"""Result of an evaluation: leaderboard, labels, notes and files."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from converters.records import Qrel
from converters.trec_qrels import write_qrels
from trecexam.extensions.erag.end_to_end import QueryCorrelation
from trecexam.extensions.erag.grader import five
from trecexam.extensions.erag.labels import Labelled, Unlabelled
from trecexam.extensions.erag.retrieval import is_binary
from trecexam.files.atomic import replace_all
from trecexam.files.stamps import Rejected
from trecexam.results.result import Result
from trecexam.results.table import Table, to_tsv
from trecexam.results.text import LOST, Note, plural, rejected_notes
from trecexam.scores.leaderboard import Leaderboard
from trecexam.scores.values import MeasureValues

Number = TypeVar("Number", int, float)
#: Files that `Evaluation.write` always writes, and optional files; stale files are removed.
ALWAYS = ("labels.tsv", "scores.tsv")
FILES = (*ALWAYS, "unlabelled.tsv", "correlation.tsv", "rejected.tsv", "labels.qrels", "labels.graded.qrels")


@dataclass(frozen=True)
class Evaluation(Result):
    """Scores of runs from a downstream model's answers from each document.

    Attributes:
        metric: name of the metric behind the labels.
        labelled: the labels, and the documents without one.
        by_query: each run's value on each query of the computed measures.
        leaderboard: means over all queries with gold outputs; a query that a run skips counts 0.
        refused: reasons why requested measures were not computed.
        correlations: by run and measure; empty without end-to-end scores.
        rejected: rejected inputs.
        notes: notes, one per line.
        complete: False if the model was stopped early.
    """

    metric: str
    labelled: Labelled
    by_query: MeasureValues
    leaderboard: Leaderboard
    refused: tuple[str, ...] = ()
    correlations: tuple[QueryCorrelation, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    notes: tuple[str, ...] = ()
    complete: bool = True

    @property
    def binary(self) -> bool:
        """True if all labels are 0 or 1."""
        return is_binary(self.labelled.labels)

    def _declare(self) -> dict[str, Table]:
        """`runs`, the leaderboard; the other tables are the files, by name."""
        by_query = self.by_query
        queries = (*by_query.query_ids, "all")
        means = {row.run: row.scores for row in self.leaderboard.rows}
        scores = [
            (run, measure, query_id, value)
            for run in by_query.runs
            for measure, mean in zip(by_query.measures, means[run], strict=True)
            for query_id, value in zip(
                queries, (*by_query.matrix(measure, (run,))[0].tolist(), mean.mean), strict=True
            )
        ]
        tables = {
            "runs": self.leaderboard.table,
            # Labels are integers in files if all are 0 or 1.
            "labels": Table(("query_id", "doc_id", "label"), self._rows(int if self.binary else float)),
            "scores": Table(("run", "measure", "query_id", "value"), tuple(scores)),
            "unlabelled": Table(Unlabelled._fields, self.labelled.unlabelled),
            "correlation": Table(QueryCorrelation._fields, self.correlations),
            "rejected": Table(Rejected._fields, self.rejected),
        }
        always = ("runs", "labels", "scores")
        return {name: table for name, table in tables.items() if table.rows or name in always}

    def _rows(self, number: Callable[[float], Number]) -> tuple[tuple[str, str, Number], ...]:
        """Return (query_id, doc_id, label) with labels converted by `number`."""
        return tuple(
            (query_id, doc_id, number(label))
            for query_id, labels in self.labelled.labels.items()
            for doc_id, label in labels.items()
        )

    @property
    def facts(self) -> dict[str, Any]:
        """The metric, the number of labels, and measures that the labels do not allow."""
        return {
            "metric": self.metric,
            "binary": self.binary,
            "n_queries": len(self.by_query.query_ids),
            "n_labels": sum(map(len, self.labelled.labels.values())),
            "n_unlabelled": Counter(row.status for row in self.labelled.unlabelled),
            "empty_outputs": self.labelled.empty,
            "refused_measures": list(self.refused),
        }

    @property
    def failed(self) -> bool:
        """True if the model or the metric failed for a document."""
        return any(row.status != "missing" for row in self.labelled.unlabelled)

    def write(self, folder: Path) -> None:
        """Write the files, and remove stale files of an earlier evaluation."""
        contents = {f"{name}.tsv": to_tsv(table).encode() for name, table in self.tables.items()}
        del contents["runs.tsv"]
        buffer = io.BytesIO()
        # With fractions, labels become round-half-up(5 x label).
        write_qrels((Qrel(*row) for row in self._rows(int if self.binary else five)), buffer)
        if buffer.tell():
            contents["labels.qrels" if self.binary else "labels.graded.qrels"] = buffer.getvalue()
        replace_all(folder, contents, FILES)


def noted(evaluation: Evaluation) -> Evaluation:
    """Return an evaluation with notes on rejected inputs, missing labels and refused measures."""
    notes = (*rejected_notes(evaluation.rejected), *evaluation.notes, *_notes(evaluation))
    return replace(evaluation, notes=notes)


def _notes(evaluation: Evaluation) -> Iterator[str]:
    if not evaluation.complete:
        yield Note(
            "stopped before writing any files; the model's answers are stored: run it again to continue", LOST
        )
        return
    labelled, by_query = evaluation.labelled, evaluation.by_query
    if labelled.empty:
        yield f"{plural(labelled.empty, 'empty output')}, scored by the metric like others"
    if missing := labelled.unlabelled:
        reasons = Counter(row.reason for row in missing)
        reason_counts = "; ".join(f"{count:,}: {reason}" for reason, count in reasons.most_common(3))
        more = "; ..." if len(reasons) > 3 else ""
        yield Note(
            f"{plural(len(missing), 'document')} without a label, counted as 0 ({reason_counts}{more}), "
            f"'{missing[0].doc_id}' of query '{missing[0].query_id}' first; all are in unlabelled.tsv",
            LOST,
        )
    yield from (*evaluation.refused, *by_query.failure_notes)
    labels = plural(sum(map(len, labelled.labels.values())), "label")
    kind = "fractions; as whole numbers, 5 x label, in labels.graded.qrels"
    kind = "0 or 1" if evaluation.binary else kind
    yield f"{labels} by {evaluation.metric} ({kind}), {plural(len(by_query.query_ids), 'query')}"
