"""support.tsv, support_runs.tsv and the section of the report, of a grader of support."""

from __future__ import annotations

from collections.abc import Mapping

from trecexam.extensions.support.support import LABELS_FILE, RUNS_FILE, SupportReport
from trecexam.line.assessment import Assessment, Part
from trecexam.line.output_files import Feature, OutputFiles
from trecexam.tables.result import Tables
from trecexam.tables.section import ReportPart

#: Runs that the page shows; the file has the rest.
_ROWS = 15
_PARTS: tuple[Part, ...] = ("cells", "people", "runs", "settings")
_LEAD = (
    "Does a cited passage say what the sentence says that cites it? SupportP is over citations, SupportR "
    "over all sentences: full support counts 1, partial 0.5. Words and sentences are means a response, "
    "citations a sentence."
)


def own_support(track: Assessment) -> SupportReport | None:
    """The support of the track's responses; None where there are none, or of another kind of grader."""
    return SupportReport(track) if track.asked.citing is not None and track.responses else None


def _files(track: Assessment) -> Mapping[str, bytes]:
    report = own_support(track)
    return {} if report is None else report.contents()


def support_section(track: Assessment) -> tuple[ReportPart, ...]:
    """The section "support"; nothing where there is no support."""
    report = own_support(track)
    if report is None:
        return ()
    result = Tables({"support": report.table()}, report.remarks())
    files = RUNS_FILE, LABELS_FILE
    return (ReportPart("support", result, "Support by cited passages", _LEAD, files=files, rows=_ROWS),)


SUPPORT_FEATURE = Feature(
    (OutputFiles((LABELS_FILE, RUNS_FILE), _PARTS, _files),), support_section, of_any_kind=True
)
