"""out/erag/: what `trecexam erag` writes, with every update of a track whose grader is `erag`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trecexam.extensions.erag.evaluation import Evaluation, evaluated
from trecexam.extensions.erag.grader import DEFAULT_METRIC
from trecexam.extensions.erag.labels import from_grades
from trecexam.extensions.erag.runs import counted_queries, lists, tied_runs
from trecexam.line.output_files import ExtraOutputs, Feature
from trecexam.tables.excerpt import excerpt
from trecexam.tables.section import ExtraFiles, ReportSection
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment

#: Runs that the page shows.
_ROWS = 50


def made(track: Assessment) -> ExtraFiles:
    """Its files on the default measures; none where another grader asks about gold outputs."""
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
    return ExtraFiles(evaluation.contents(), _section(evaluation) if evaluation.values else None)


def _section(evaluation: Evaluation) -> ReportSection:
    kind = "0 or 1" if evaluation.binary else "fractions"
    number = plural(sum(map(len, evaluation.labelled.labels.values())), "label")
    lines = (
        f"{number} by {evaluation.metric} ({kind}); means over {plural(len(evaluation.query_ids), 'query')}",
    )
    return ReportSection(
        "erag",
        "eRAG",
        "Runs are scored by what the system's own language model makes of each document alone: its output is "
        "compared with gold outputs, and that is the document's label.",
        "In the sections below a document's rating is 5 times its label, rounded.",
        tuple(f"{line}." for line in (*lines, evaluation.unlabelled(), *evaluation.notes) if line),
        excerpt(evaluation.table, _ROWS, "erag/scores.tsv"),
        {},
    )


ERAG = Feature(extra=ExtraOutputs("gold", "erag", made))
