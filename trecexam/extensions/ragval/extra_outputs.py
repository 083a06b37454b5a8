"""out/ragval/: judged answers and the report, updated for tracks with the grader `ragval`."""

from __future__ import annotations

import io

from trecexam.extensions.ragval.formats.answers import write_judged
from trecexam.extensions.ragval.judged import FOLDER, JudgedAnswers, judged
from trecexam.extensions.ragval.reporting import RagvalReport, report_of
from trecexam.line.assessment import Assessment
from trecexam.line.output_files import ExtraOutputs, Feature
from trecexam.tables.section import ExtraFiles, ReportHead, ReportPart
from trecexam.tables.table import to_json


def made(track: Assessment) -> ExtraFiles:
    """judged.jsonl, judging.json and report.tsv; nothing without answers."""
    answers = judged(track)
    if not answers.rows and not answers.waiting:
        return ExtraFiles({})
    buffer = io.BytesIO()
    write_judged(answers.rows, buffer)
    judging = {**answers.as_json(), "judge": dict(track.grader.identity)}
    contents = {"judged.jsonl": buffer.getvalue(), "judging.json": to_json(judging).encode()}
    if not answers.rows:
        return ExtraFiles(contents)
    report = report_of(answers.rows)
    return ExtraFiles(contents | {"report.tsv": report.to_tsv().encode()}, _head(answers, report))


def _head(answers: JudgedAnswers, report: RagvalReport) -> ReportHead:
    report = report.with_notes(*answers.remarks())
    part = ReportPart("beside", report, "Judged answers", files=(f"{FOLDER}/report.tsv",))
    return ReportHead(
        "Systems answer questions about knowledge blocks. A judge reads question, answer and block, and "
        "scores each answer for truthfulness and relevance, from 1 to 5.",
        part,
        "In the sections below an answer is a passage, and its scores, rounded down, are its ratings on two "
        "items.",
        FOLDER,
    )


RAGVAL = Feature(extra=ExtraOutputs("truthfulness", FOLDER, made))
