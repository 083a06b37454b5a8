"""out/ragval/: judged answers and the report, updated for tracks with the grader `ragval`."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from trecexam.extensions.ragval.formats.answers import judged_lines
from trecexam.feature import Feature
from trecexam.files.cache import memoized
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.page.page import Page

if TYPE_CHECKING:
    from trecexam.extensions.ragval.reporting import RagvalReport

#: In out/.
FOLDER = "ragval"
_REPORT = f"{FOLDER}/report.tsv"


@memoized
def _report(track: GradedTrack) -> RagvalReport | None:
    """Return the report; None for other graders, which do not load RAGVAL's modules."""
    if "truthfulness" not in track.grader.item_kinds:
        return None
    from trecexam.extensions.ragval.judged import judged

    return judged(track)


def _judged(track: GradedTrack) -> bytes | None:
    report = _report(track)
    return None if report is None else judged_lines(chain.from_iterable(report.answers.values()))


def _page(track: GradedTrack, page: Page) -> None:
    """Begin the page with the judged answers."""
    report = _report(track)
    if report is None:
        return
    page.lead = (
        "Systems answer questions about knowledge blocks. A judge reads question, answer and block, and "
        "scores each answer for truthfulness and relevance, from 1 to 5."
    )
    page.add(
        "beside",
        report,
        title="Judged answers",
        files=(_REPORT,),
        below=f"All of it is in `{FOLDER}/`. In the sections below an answer is a passage, and its scores, "
        "rounded down, are its ratings on two items.",
        after="",
    )


RAGVAL = Feature(
    {
        f"{FOLDER}/judged.jsonl": ("Answers with their scores, of the grader `ragval`.", _judged),
        _REPORT: ("Each system's mean scores.", _report),
    },
    _page,
    of_any_kind=True,
)
