"""Labels and ranked lists -> scores, tables and files."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from ir_measures import Measure

from converters.errors import ConversionError
from converters.records import Qrel
from converters.trec_qrels import write_qrels
from trecexam.errors import TrecexamError
from trecexam.extensions.erag.downstream import read_end_to_end
from trecexam.extensions.erag.grader import five
from trecexam.extensions.erag.labels import Labelled, Ranked, Unlabelled
from trecexam.extensions.erag.retrieval import (
    fractions_refused,
    is_binary,
    retrieval_evaluator,
    retrieval_measure,
    takes_fractions,
)
from trecexam.extensions.erag.runs import refused_lines
from trecexam.files.atomic import replace_all
from trecexam.files.stamps import Rejected
from trecexam.results.notes import LOST, Note
from trecexam.results.result import Result
from trecexam.results.table import Layout, Table, to_tsv
from trecexam.results.text import plural

#: The cutoff of the default measures.
CUTOFF = 10
ALL = "all"
#: What `Evaluation.write` always writes, and what it may write; what does not apply is removed.
ALWAYS = ("labels.tsv", "scores.tsv")
FILES = (*ALWAYS, "unlabelled.tsv", "correlation.tsv", "rejected.tsv", "labels.qrels", "labels.graded.qrels")


class QueryCorrelation(NamedTuple):
    """Rank correlation over queries; None if undefined, with the `reason`."""

    n_queries: int
    kendall_tau: float | None
    spearman_rho: float | None
    reason: str = ""


@dataclass(frozen=True)
class Evaluation(Result):
    """Scores of runs from a downstream model's answers from each document.

    Attributes:
        metric: the name of what labels are made with.
        query_ids: the queries that means are over, sorted.
        measures: those that were computed, in the order asked for.
        values: run -> query_id -> measure -> value.
        refused: why the others were not.
        correlations: run -> measure -> correlation with the end-to-end scores; empty where none were given.
        rejected: inputs that were rejected.
        notes: what one must know beside, one per line; also how many labels there are, and of what.
        complete: False where the model was stopped before it had answered all.
    """

    metric: str
    labelled: Labelled
    query_ids: tuple[str, ...]
    measures: tuple[str, ...]
    values: Mapping[str, Mapping[str, Mapping[str, float]]]
    refused: tuple[str, ...] = ()
    correlations: Mapping[str, Mapping[str, QueryCorrelation]] = field(default_factory=dict)
    rejected: tuple[Rejected, ...] = ()
    notes: tuple[str, ...] = ()
    complete: bool = True

    @property
    def binary(self) -> bool:
        """Whether all labels are 0 or 1."""
        return is_binary(self.labelled.labels)

    def mean(self, run: str, measure: str) -> float:
        """The mean over all queries; one that the run skips counts 0."""
        values = [self.values[run][query_id][measure] for query_id in self.query_ids]
        return math.fsum(values) / len(values) if values else 0.0

    def _declare(self) -> dict[str, Table]:
        """`runs`, the means, best first; the other tables are the files, by name."""
        tables = {"runs": self._means(), "labels": self._labels(), "scores": self._scores()}
        if self.labelled.unlabelled:
            tables["unlabelled"] = Table(Unlabelled._fields, self.labelled.unlabelled)
        if self.correlations:
            tables["correlation"] = self._correlation()
        if self.rejected:
            tables["rejected"] = Table(Rejected._fields, tuple(tuple(row) for row in self.rejected))
        return tables

    @property
    def facts(self) -> dict[str, Any]:
        """The metric, the number of labels, and measures that they do not allow."""
        return {
            "metric": self.metric,
            "binary": self.binary,
            "n_queries": len(self.query_ids),
            "n_labels": sum(map(len, self.labelled.labels.values())),
            "n_unlabelled": Counter(row.status for row in self.labelled.unlabelled),
            "empty_outputs": self.labelled.empty,
            "refused_measures": list(self.refused),
        }

    def _means(self) -> Table:
        """A line per run, best by the first measure first; ties by name."""
        rows: list[tuple[Any, ...]] = [
            (run, *(self.mean(run, name) for name in self.measures)) for run in self.values
        ]
        rows.sort(key=lambda row: (-round(row[1], 12) if self.measures else 0, row[0]))
        return Table(("run", *self.measures), tuple(rows), layout=Layout(("run",)))

    def _labels(self) -> Table:
        """`query_id doc_id label`; whole numbers where all are 0 or 1."""
        binary = self.binary
        return Table(
            ("query_id", "doc_id", "label"),
            tuple(
                (query_id, doc_id, int(label) if binary else label)
                for query_id, labels in self.labelled.labels.items()
                for doc_id, label in labels.items()
            ),
        )

    def _scores(self) -> Table:
        """`run measure query_id value`, with the mean after the queries, as `all`."""
        return Table(
            ("run", "measure", "query_id", "value"),
            tuple(
                row
                for run, values in self.values.items()
                for name in self.measures
                for row in (
                    *((run, name, query_id, values[query_id][name]) for query_id in self.query_ids),
                    (run, name, ALL, self.mean(run, name)),
                )
            ),
        )

    def _correlation(self) -> Table:
        """`run measure n_queries kendall_tau spearman_rho`; empty fields where they are undefined."""
        return Table(
            ("run", "measure", "n_queries", "kendall_tau", "spearman_rho"),
            tuple(
                (run, name, *each[:3])
                for run, by_measure in self.correlations.items()
                for name, each in by_measure.items()
            ),
        )

    def undefined(self) -> Iterator[str]:
        """Reasons for undefined correlations, one per line."""
        for run, by_measure in self.correlations.items():
            reasons = {each.reason for each in by_measure.values()}
            if len(reasons) == 1 and all(reasons):
                yield f"{run}: no correlation: {reasons.pop()}"
                continue
            for name, each in by_measure.items():
                if each.reason:
                    yield f"{run}, {name}: no correlation: {each.reason}"

    def unlabelled(self) -> str:
        """Return a note on documents without a label, with reasons; "" if all have one."""
        missing = self.labelled.unlabelled
        if not missing:
            return ""
        reasons = Counter(row.reason for row in missing)
        reason_counts = "; ".join(f"{count:,}: {reason}" for reason, count in reasons.most_common(3))
        more = "; ..." if len(reasons) > 3 else ""
        line = (
            f"{plural(len(missing), 'document')} without a label, counted as 0 ({reason_counts}{more}), "
            f"'{missing[0].doc_id}' of query '{missing[0].query_id}' first; all are in unlabelled.tsv"
        )
        return Note(line, LOST)

    @property
    def failed(self) -> bool:
        """Whether the model or the metric failed for a document."""
        return any(row.status != "missing" for row in self.labelled.unlabelled)

    def qrels(self) -> Iterator[Qrel]:
        """The labels as whole numbers: 0 and 1, or with fractions round-half-up(5 x label)."""
        binary = self.binary
        for query_id, labels in self.labelled.labels.items():
            for doc_id, label in labels.items():
                yield Qrel(query_id, doc_id, int(label) if binary else five(label))

    def contents(self) -> dict[str, bytes]:
        """The files by name, without those that do not apply."""
        contents = {
            f"{name}.tsv": to_tsv(table).encode() for name, table in self.tables.items() if name != "runs"
        }
        buffer = io.BytesIO()
        write_qrels(self.qrels(), buffer)
        if buffer.tell():
            contents["labels.qrels" if self.binary else "labels.graded.qrels"] = buffer.getvalue()
        return contents

    def write(self, folder: Path) -> None:
        """Writes the files, and removes files of an earlier evaluation that do not apply.

        Raises:
            TrecexamError: they cannot be written.
        """
        replace_all(folder, self.contents(), FILES)

    def told(self) -> Iterator[str]:
        """Notes: the number of labels, documents without one, and measures not computed, one per line."""
        if not self.complete:
            line = (
                "stopped before writing any files; the model's answers are stored: run it again to continue"
            )
            yield Note(line, LOST)
            return
        if self.labelled.empty:
            yield f"{plural(self.labelled.empty, 'empty output')}, scored by the metric like others"
        yield from filter(None, (self.unlabelled(), *self.refused, *self.undefined()))
        labels = plural(sum(map(len, self.labelled.labels.values())), "label")
        kind = "0 or 1" if self.binary else "fractions; as whole numbers, 5 x label, in labels.graded.qrels"
        yield f"{labels} by {self.metric} ({kind}), {plural(len(self.query_ids), 'query')}"


def evaluated(
    metric: str,
    labelled: Labelled,
    ranked: Ranked,
    query_ids: Sequence[str],
    measures: Sequence[Measure] | None,
) -> Evaluation:
    """Scores the runs; measures that the labels do not allow are left out and named.

    Args:
        measures: None for what the labels allow of P, nDCG, Success, R, AP and RR at 10.
    """
    binary = is_binary(labelled.labels)
    asked_for = default_measures() if measures is None else list(measures)
    able = [measure for measure in asked_for if binary or takes_fractions(measure)]
    refused = [fractions_refused(measure) for measure in asked_for if measure not in able]
    evaluate = retrieval_evaluator(labelled.labels, able, query_ids)
    values = {run: evaluate(lists) for run, lists in sorted(ranked.items())}
    return Evaluation(
        metric,
        labelled,
        tuple(query_ids),
        tuple(map(str, able)),
        values,
        () if measures is None else tuple(refused),
    )


def default_measures() -> list[Measure]:
    """The measures computed by default."""
    return [retrieval_measure(f"{name}@{CUTOFF}") for name in ("P", "nDCG", "Success", "R", "AP", "RR")]


def measures_of(names: Iterable[str]) -> list[Measure]:
    """The measures with these names, without duplicates.

    Raises:
        TrecexamError: a name is not a measure.
    """
    try:
        measures = [retrieval_measure(name) for name in names]
    except ValueError as error:
        raise TrecexamError(str(error)) from None
    return list(dict.fromkeys(measures))


def correlated(evaluation: Evaluation, path: Path, display_name: str) -> Evaluation:
    """The evaluation with added correlations with end-to-end scores.

    Args:
        path: of a file of `run query_id score` lines.
        display_name: its name, for what is rejected.

    Raises:
        ConversionError: the file cannot be read.
    """
    errors: list[ConversionError] = []
    scores: dict[str, dict[str, float]] = {}
    queries = frozenset(evaluation.query_ids)
    for row in read_end_to_end(path, errors.append):
        if row.run not in evaluation.values:
            reason = f"run '{row.run}' is not evaluated here"
        elif row.query_id not in queries:
            reason = f"query '{row.query_id}' has no gold outputs, or is not in the track"
        elif row.query_id in scores.get(row.run, {}):
            reason = f"run '{row.run}' has a score for query '{row.query_id}' already; the first one counts"
        else:
            scores.setdefault(row.run, {})[row.query_id] = row.score
            continue
        errors.append(ConversionError(path, row.line, reason))
    correlations = {
        run: {
            name: query_correlation(
                {query_id: by_measure[name] for query_id, by_measure in values.items()}, scores.get(run, {})
            )
            for name in evaluation.measures
        }
        for run, values in evaluation.values.items()
    }
    rejected = (*evaluation.rejected, *refused_lines(display_name, errors))
    return replace(evaluation, correlations=correlations, rejected=rejected)


def query_correlation(retrieval: Mapping[str, float], end_to_end: Mapping[str, float]) -> QueryCorrelation:
    """Kendall's tau-b and Spearman's rho over the queries that both have.

    This is the table of Salemi and Zamani (SIGIR 2024), section 4: a retriever's eRAG score against the
    score of the system's answer from the whole list.

    Args:
        retrieval, end_to_end: query_id -> score, finite.
    """
    from scipy.stats import kendalltau, spearmanr

    common = sorted(retrieval.keys() & end_to_end.keys())
    ours, theirs = ([side[query_id] for query_id in common] for side in (retrieval, end_to_end))
    if len(common) < 2:
        return QueryCorrelation(len(common), None, None, "fewer than two queries have both scores")
    for side, what in ((ours, "this measure"), (theirs, "the end-to-end score")):
        if len(set(side)) == 1:
            return QueryCorrelation(len(common), None, None, f"{what} is {side[0]:g} for every query")
    tau, rho = float(kendalltau(ours, theirs).statistic), float(spearmanr(ours, theirs).statistic)
    return QueryCorrelation(len(common), tau, rho)
