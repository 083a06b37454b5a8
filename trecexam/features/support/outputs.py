"""support.tsv, support_runs.tsv and the section of the report, of a grader of support."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trecexam.features.support.support import LABELS_FILE, RUNS_FILE, SupportReport
from trecexam.line.assessment import Assessment, Part
from trecexam.line.output_files import Feature, OutputFiles
from trecexam.tables.excerpt import excerpt
from trecexam.tables.section import FeatureReport, ReportPart
from trecexam.tables.text import sentence

#: Runs that the page shows; the file has the rest.
_ROWS = 15
_PARTS: tuple[Part, ...] = ("cells", "people", "runs", "settings")
_SHOWN = (
    "run",
    "responses",
    "SupportP",
    "SupportR",
    "SupportF1",
    "uncited",
    "words",
    "sentences",
    "citations",
)


def own_support(track: Assessment) -> SupportReport | None:
    """The support of the track's responses; None where there are none, or of another kind of grader."""
    return SupportReport(track) if track.asked.citing is not None and track.responses else None


def _files(track: Assessment) -> Mapping[str, bytes]:
    report = own_support(track)
    return {} if report is None else report.contents()


def support_section(track: Assessment) -> FeatureReport:
    """The section "support"; nothing where there is no support."""
    report = own_support(track)
    if report is None:
        return FeatureReport(())
    values = {
        "runs": excerpt(report.table(), _ROWS, RUNS_FILE, {name: name for name in _SHOWN}),
        "lines": tuple(map(sentence, report.remarks())),
        "labels": LABELS_FILE,
    }
    html = Path(__file__).with_name("section.html")
    return FeatureReport((ReportPart("support", html, values, "Support by cited passages"),))


SUPPORT_FEATURE = Feature(
    (OutputFiles((LABELS_FILE, RUNS_FILE), _PARTS, _files),), support_section, of_any_kind=True
)
