"""out/erag/: the files of `trecexam erag`, updated if the track's grader is `erag`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trecexam.extensions.erag.evaluation import Evaluation, evaluated
from trecexam.extensions.erag.grader import DEFAULT_METRIC
from trecexam.extensions.erag.labels import from_grades
from trecexam.extensions.erag.runs import counted_queries, lists, tied_runs
from trecexam.line.output_files import ExtraOutputs, Feature
from trecexam.tables.result import Tables
from trecexam.tables.section import ExtraFiles, ReportHead, ReportPart
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment


def made(track: Assessment) -> ExtraFiles:
    """The files on the default measures; none if another grader uses gold outputs."""
    label = track.traits.label
    if label is None:
        return ExtraFiles({})
    query_ids, _ = counted_queries(track.folder, track)
    ranked = lists(track, query_ids, track.config.track.depth)
    labelled = from_grades(track, label, ranked, query_ids)
    metric = track.config.grader.metric or DEFAULT_METRIC
    evaluation = replace(
        evaluated(metric, labelled, ranked, query_ids, None), notes=tuple(tied_runs(track.runs, query_ids))
    )
    return ExtraFiles(evaluation.contents(), _head(evaluation) if evaluation.values else None)


def _head(evaluation: Evaluation) -> ReportHead:
    kind = "0 or 1" if evaluation.binary else "fractions"
    number = plural(sum(map(len, evaluation.labelled.labels.values())), "label")
    means = (
        f"{number} by {evaluation.metric} ({kind}); means over {plural(len(evaluation.query_ids), 'query')}"
    )
    notes = filter(None, (means, evaluation.unlabelled(), *evaluation.notes))
    result = Tables({"scores": evaluation.table}, tuple(notes))
    return ReportHead(
        "Runs are scored by what the system's own language model answers from each document alone: its "
        "output is "
        "compared with gold outputs, and that is the document's label.",
        ReportPart("beside", result, "eRAG", files=("erag/scores.tsv",)),
        "In the sections below a document's rating is 5 times its label, rounded.",
        "erag",
    )


ERAG = Feature(extra=ExtraOutputs("gold", "erag", made))
