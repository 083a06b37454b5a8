"""out/ragval/: judged answers and the report, updated for tracks with the grader `ragval`."""

from __future__ import annotations

import io

from trecexam.extensions.ragval.formats.answers import write_judged
from trecexam.extensions.ragval.judged import FOLDER, JudgedAnswers, judged
from trecexam.extensions.ragval.reporting import RagvalReport, report_of
from trecexam.feature import Feature
from trecexam.files.cache import memoized
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.page.page import Page
from trecexam.results.table import to_json

_REPORT = f"{FOLDER}/report.tsv"


@memoized
def _answers(track: GradedTrack) -> JudgedAnswers:
    return judged(track) if "truthfulness" in track.grader.item_kinds else JudgedAnswers(())


@memoized
def _report(track: GradedTrack) -> RagvalReport | None:
    rows = _answers(track).rows
    return report_of(rows) if rows else None


def _judged(track: GradedTrack) -> bytes | None:
    answers, buffer = _answers(track), io.BytesIO()
    write_judged(answers.rows, buffer)
    return buffer.getvalue() if answers.rows or answers.waiting else None


def _judging(track: GradedTrack) -> bytes | None:
    answers = _answers(track)
    judging = {**answers.as_json(), "judge": dict(track.grader.identity)}
    return to_json(judging).encode() if answers.rows or answers.waiting else None


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
        report.with_notes(*_answers(track).remarks()),
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
