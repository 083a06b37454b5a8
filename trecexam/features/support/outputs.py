"""support.tsv, support_runs.tsv and the section of the report, of a grader of support."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trecexam.features.support.tables import SupportTables
from trecexam.line.assessment import Assessment, Part
from trecexam.line.output_files import Feature, OutputFiles
from trecexam.tables.excerpt import excerpt
from trecexam.tables.section import FeatureReport, ReportPart
from trecexam.tables.table import to_tsv
from trecexam.tables.text import sentence

#: In out/.
LABELS_FILE, RUNS_FILE = "support.tsv", "support_runs.tsv"
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


def _own(track: Assessment) -> SupportTables | None:
    """The support of the track's responses; None where there are none, or of another kind of grader."""
    return SupportTables(track) if track.asked.citing is not None and track.responses else None


def _files(track: Assessment) -> Mapping[str, bytes]:
    own = _own(track)
    if own is None:
        return {}
    return {LABELS_FILE: to_tsv(own.labels()).encode(), RUNS_FILE: to_tsv(own.runs()).encode()}


def support_section(track: Assessment) -> FeatureReport:
    """The section "support"; nothing where there is no support."""
    own = _own(track)
    if own is None:
        return FeatureReport(())
    values = {
        "runs": excerpt(own.runs(), _ROWS, RUNS_FILE, {name: name for name in _SHOWN}),
        "lines": tuple(map(sentence, own.notes())),
        "labels": LABELS_FILE,
    }
    html = Path(__file__).with_name("section.html")
    return FeatureReport((ReportPart("support", html, values, "Support by cited passages"),))


SUPPORT_FEATURE = Feature(
    (OutputFiles((LABELS_FILE, RUNS_FILE), _PARTS, _files),), support_section, of_any_kind=True
)
