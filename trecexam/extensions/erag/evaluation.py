"""Result of an evaluation: leaderboard, labels, notes and files."""

from __future__ import annotations

import io
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from converters.records import Qrel
from converters.trec_qrels import write_qrels
from trecexam.extensions.erag.grader import five
from trecexam.extensions.erag.metrics import NoLabel
from trecexam.extensions.erag.retrieval import Labels, Pair, is_binary
from trecexam.files.atomic import replace_all
from trecexam.files.stamps import Rejected
from trecexam.results.result import Result
from trecexam.results.table import Table, to_tsv
from trecexam.results.text import LOST, Note, plural, shorten_list
from trecexam.scores.leaderboard import Leaderboard
from trecexam.scores.values import MeasureValues

#: Files that `Evaluation.write` always writes, and optional files; stale files are removed.
ALWAYS = ("labels.tsv", "scores.tsv")
FILES = (*ALWAYS, "unlabelled.tsv", "correlation.tsv", "rejected.tsv", "labels.qrels", "labels.graded.qrels")


@dataclass(frozen=True)
class Evaluation(Result):
    """Scores of runs from a downstream model's answers from each document.

    Attributes:
        metric: name of the metric behind the labels.
        labels: (query_id, doc_id) -> label 0..1, sorted.
        unlabelled: (query_id, doc_id) -> status and reason of ranked documents without a label.
        n_empty: number of empty outputs, which the metric labels, too.
        by_query: each run's value on each query of the computed measures.
        leaderboard: means over all queries with gold outputs; a query that a run skips counts 0.
        correlation: a row per run and measure, see `query_correlations`.
        failed: True if the model or the metric failed for a document, or a requested measure is undefined.
        rejected: rejected inputs.
        notes: notes, one per line.
    """

    metric: str
    labels: Labels
    unlabelled: Mapping[Pair, NoLabel]
    n_empty: int
    by_query: MeasureValues
    leaderboard: Leaderboard
    correlation: Table
    failed: bool
    rejected: tuple[Rejected, ...]
    notes: tuple[str, ...] = ()

    @property
    def binary(self) -> bool:
        """True if all labels are 0 or 1."""
        return is_binary(self.labels)

    def _declare(self) -> dict[str, Table]:
        """`runs`, the leaderboard; the other tables are the files, by name."""
        values, scores = self.by_query, {row.run: row.scores for row in self.leaderboard.rows}
        means = np.array([[[score.mean for score in scores[run]]] for run in values.runs])
        cells = np.append(values.array, means, axis=1).transpose(0, 2, 1).ravel().tolist()
        keys = itertools.product(values.runs, values.measures, (*values.query_ids, "all"))
        scored_cells = tuple((*key, value) for key, value in zip(keys, cells, strict=True))
        # Labels are integers in files if all are 0 or 1.
        number = int if self.binary else float
        labels = tuple((*pair, number(label)) for pair, label in self.labels.items())
        unlabelled = tuple((*pair, *why) for pair, why in self.unlabelled.items())
        return {
            "runs": self.leaderboard.table,
            "labels": Table(("query_id", "doc_id", "label"), labels),
            "scores": Table(("run", "measure", "query_id", "value"), scored_cells),
            "unlabelled": Table(("query_id", "doc_id", *NoLabel._fields), unlabelled),
            "correlation": self.correlation,
            "rejected": Table(Rejected._fields, self.rejected),
        }

    @property
    def facts(self) -> dict[str, Any]:
        """The metric, and numbers of queries, labels and empty outputs."""
        return {
            "metric": self.metric,
            "binary": self.binary,
            "n_queries": len(self.by_query.query_ids),
            "n_labels": len(self.labels),
            "empty_outputs": self.n_empty,
        }

    def write(self, folder: Path) -> None:
        """Write the files, and remove stale files of an earlier evaluation."""
        tables = {f"{name}.tsv": table for name, table in self.tables.items() if name != "runs"}
        contents = {
            name: to_tsv(each).encode() for name, each in tables.items() if each.rows or name in ALWAYS
        }
        buffer = io.BytesIO()
        # With fractions, labels become round-half-up(5 x label).
        number = int if self.binary else five
        write_qrels((Qrel(*pair, number(label)) for pair, label in self.labels.items()), buffer)
        if buffer.tell():
            contents["labels.qrels" if self.binary else "labels.graded.qrels"] = buffer.getvalue()
        replace_all(folder, contents, FILES)

    def label_notes(self) -> Iterator[str]:
        """Yield notes on missing labels and values, and the number and kind of the labels."""
        if self.n_empty:
            yield f"{plural(self.n_empty, 'empty output')}, scored by the metric like others"
        if self.unlabelled:
            (query_id, doc_id), *_ = self.unlabelled
            reasons = Counter(why.reason for why in self.unlabelled.values())
            counts = shorten_list([f"{n:,}: {why}" for why, n in reasons.most_common()], 3, quote="")
            yield Note(
                f"{plural(len(self.unlabelled), 'document')} without a label, counted as 0 ({counts}), "
                f"'{doc_id}' of query '{query_id}' first; all are in unlabelled.tsv",
                LOST,
            )
        yield from self.by_query.failure_notes
        labels, queries = plural(len(self.labels), "label"), plural(len(self.by_query.query_ids), "query")
        fractions = "fractions; as whole numbers, 5 x label, in labels.graded.qrels"
        yield f"{labels} by {self.metric} ({'0 or 1' if self.binary else fractions}), {queries}"


def query_correlations(values: MeasureValues, end_to_end: Mapping[Pair, float] | None) -> Table:
    """Correlate the runs' values with end-to-end scores, over the queries that have both.

    This is the table of Salemi and Zamani (SIGIR 2024), section 4: a retriever's eRAG score against the
    score of the system's answer from the whole list. Kendall's tau-b and Spearman's rho are empty with fewer
    than two queries or constant values on a side.

    Args:
        end_to_end: (run, query_id) -> score, finite; None for a table without rows.
    """
    header = "run", "measure", "n_queries", "kendall_tau", "spearman_rho"
    if end_to_end is None:
        return Table(header, ())
    from scipy.stats import kendalltau, spearmanr

    rows = []
    for run, measure in itertools.product(values.runs, values.measures):
        query_ids = [query_id for query_id in values.query_ids if (run, query_id) in end_to_end]
        theirs = [end_to_end[run, query_id] for query_id in query_ids]
        ours = values.matrix(measure, (run,), query_ids)[0].tolist()
        varied = len({*ours}) > 1 and len({*theirs}) > 1
        both = (float(call(ours, theirs).statistic) if varied else None for call in (kendalltau, spearmanr))
        rows.append((run, measure, len(query_ids), *both))
    return Table(header, tuple(rows))
