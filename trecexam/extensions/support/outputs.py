"""support.tsv, support_runs.tsv and the section of the report, of a grader of support."""

from __future__ import annotations

from collections.abc import Mapping

from trecexam.extensions.support.tables import SupportTables
from trecexam.line.assessment import Assessment
from trecexam.line.output_files import Feature, OutputFiles
from trecexam.tables.result import Tables
from trecexam.tables.section import ReportPart
from trecexam.tables.table import to_tsv

#: In out/.
LABELS_FILE, RUNS_FILE = "support.tsv", "support_runs.tsv"
_FILES = {
    LABELS_FILE: "Each citation with its label of support.",
    RUNS_FILE: "Each run's scores of support, length and number of citations.",
}
#: Runs that the page shows; the file has the rest.
_ROWS = 15
_LEAD = (
    "How well cited passages support the sentences that cite them. SupportP is over citations, SupportR "
    "over all sentences: full support counts 1, partial 0.5. Words and sentences are means a response, "
    "citations a sentence."
)


def _own(track: Assessment) -> SupportTables | None:
    """The support of the track's responses; None without responses, or for other kinds of graders."""
    return SupportTables(track) if track.asked.citing is not None and track.responses else None


def _files(track: Assessment) -> Mapping[str, bytes]:
    tables = _own(track)
    if tables is None:
        return {}
    return {LABELS_FILE: to_tsv(tables.labels()).encode(), RUNS_FILE: to_tsv(tables.runs()).encode()}


def support_section(track: Assessment) -> tuple[ReportPart, ...]:
    """The section "support"; empty without support labels."""
    tables = _own(track)
    if tables is None:
        return ()
    result = Tables({"support": tables.runs()}, tuple(tables.notes()))
    files = RUNS_FILE, LABELS_FILE
    return (ReportPart("support", result, "Support by cited passages", _LEAD, files=files, rows=_ROWS),)


SUPPORT_FEATURE = Feature((OutputFiles(_FILES, _files),), support_section, of_any_kind=True)
