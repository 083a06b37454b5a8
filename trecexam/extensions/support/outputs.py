"""support.tsv, support_runs.tsv and the section of the report, of a grader of support."""

from __future__ import annotations

from trecexam.extensions.support.tables import SupportTables
from trecexam.feature import Feature
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.page.page import Page
from trecexam.results.result import Tables

#: In out/.
LABELS_FILE, RUNS_FILE = "support.tsv", "support_runs.tsv"
#: Runs that the page shows; the file has the rest.
_ROWS = 15
_LEAD = (
    "How well cited passages support the sentences that cite them. SupportP is over citations, SupportR "
    "over all sentences: full support counts 1, partial 0.5. Words and sentences are means a response, "
    "citations a sentence."
)


def _own(track: GradedTrack) -> SupportTables | None:
    """Return the support of the track's responses; None without responses, or for other kinds of graders."""
    return SupportTables(track) if track.asked.citing is not None and track.responses else None


def _labels(track: GradedTrack) -> Tables | None:
    tables = _own(track)
    return None if tables is None else Tables({"labels": tables.labels()})


def _runs(track: GradedTrack) -> Tables | None:
    tables = _own(track)
    return None if tables is None else Tables({"support": tables.runs()})


def _page(track: GradedTrack, page: Page) -> None:
    """Add the section "support" where there are support labels."""
    tables = _own(track)
    if tables is not None:
        result = Tables({"support": tables.runs()}, tuple(tables.notes()))
        files = RUNS_FILE, LABELS_FILE
        page.add("support", result, title="Support by cited passages", lead=_LEAD, files=files, rows=_ROWS)


SUPPORT_FEATURE = Feature(
    {
        LABELS_FILE: ("Each citation with its label of support.", _labels),
        RUNS_FILE: ("Each run's scores of support, length and number of citations.", _runs),
    },
    _page,
    of_any_kind=True,
)
