"""out/ragval/: judged answers and the report, updated for tracks with the grader `ragval`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trecexam.extensions.ragval.formats.answers import judged_lines
from trecexam.feature import Feature
from trecexam.files.cache import memoized
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.page.page import Page
from trecexam.results.table import to_json

if TYPE_CHECKING:
    from trecexam.extensions.ragval.judged import JudgedAnswers
    from trecexam.extensions.ragval.reporting import RagvalReport

#: In out/.
FOLDER = "ragval"
_REPORT = f"{FOLDER}/report.tsv"


@memoized
def _answers(track: GradedTrack) -> JudgedAnswers | None:
    """Return the judged answers; None for other graders, which do not load RAGVAL's modules."""
    if "truthfulness" not in track.grader.item_kinds:
        return None
    from trecexam.extensions.ragval.judged import judged

    answers = judged(track)
    return answers if answers.rows or answers.waiting else None


@memoized
def _report(track: GradedTrack) -> RagvalReport | None:
    answers = _answers(track)
    if answers is None or not answers.rows:
        return None
    from trecexam.extensions.ragval.reporting import report_of

    return report_of(answers.rows)


def _judged(track: GradedTrack) -> bytes | None:
    answers = _answers(track)
    return None if answers is None else judged_lines(answers.rows)


def _judging(track: GradedTrack) -> bytes | None:
    answers = _answers(track)
    if answers is None:
        return None
    return to_json({**answers.as_json(), "judge": dict(track.grader.identity)}).encode()


def _page(track: GradedTrack, page: Page) -> None:
    """Begin the page with the judged answers."""
    answers, report = _answers(track), _report(track)
    if answers is None or report is None:
        return
    page.lead = (
        "Systems answer questions about knowledge blocks. A judge reads question, answer and block, and "
        "scores each answer for truthfulness and relevance, from 1 to 5."
    )
    page.add(
        "beside",
        report.with_notes(*answers.remarks()),
        title="Judged answers",
        files=(_REPORT,),
        below=f"All of it is in `{FOLDER}/`. In the sections below an answer is a passage, and its scores, "
        "rounded down, are its ratings on two items.",
        after="",
    )


RAGVAL = Feature(
    {
        f"{FOLDER}/judged.jsonl": ("Answers with their scores, of the grader `ragval`.", _judged),
        f"{FOLDER}/judging.json": ("How many answers are judged, and by which model.", _judging),
        _REPORT: ("Each system's mean scores.", _report),
    },
    _page,
    of_any_kind=True,
)
