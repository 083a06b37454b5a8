"""out/ragval/: judged answers and the report, updated for tracks with the grader `ragval`."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError
from trecexam.extensions.ragval.formats.answers import write_judged
from trecexam.extensions.ragval.judged import FOLDER, JudgedAnswers, judged
from trecexam.extensions.ragval.reporting import RagvalReport, report_of, tables_of
from trecexam.line.output_files import ExtraOutputs, Feature, FeaturePlot, PlotMeasures
from trecexam.tables.plots.drawings import Drawings, plot_files
from trecexam.tables.plots.model import Plot
from trecexam.tables.section import ExtraFiles, Picture, ReportHead, ReportPart
from trecexam.tables.table import to_json

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment


def made(track: Assessment) -> ExtraFiles:
    """judged.jsonl, judging.json and the report's files; nothing without answers."""
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
    if not track.config.report.write:
        return ExtraFiles(contents | tables_of(report))
    folder = track.folder
    drawings = Drawings(folder.out / FOLDER, folder.state, pdf=track.config.report.pdf)
    pictures = {plot.name: Picture(plot, drawings.of(plot)) for plot in report.plots}
    drawings.remember()
    contents |= tables_of(report)
    for picture in pictures.values():
        contents |= plot_files(picture.plot, picture.drawing)
    return ExtraFiles(contents, _head(answers, report, pictures))


def _head(answers: JudgedAnswers, report: RagvalReport, pictures: dict[str, Picture]) -> ReportHead:
    report = report.noted(*answers.remarks())
    part = ReportPart("beside", report, "Judged answers", files=(f"{FOLDER}/report.tsv",))
    return ReportHead(
        "Systems answer questions about knowledge blocks. A judge reads question, answer and block, and "
        "scores each answer for truthfulness and relevance, from 1 to 5.",
        part,
        "In the sections below an answer is a passage, and its scores, rounded down, are its ratings on two "
        "items.",
        FOLDER,
        pictures,
    )


def _plot_named(name: str) -> Callable[[Assessment, PlotMeasures], Plot]:
    def make(track: Assessment, plot_measures: PlotMeasures) -> Plot:
        rows = judged(track).rows
        made = {plot.name: plot for plot in report_of(rows).plots} if rows else {}
        if name not in made:
            raise TrecexamError(
                f"no plot {name}: no judged answer has scores"
                + (" by a parameter's values" if name == "sweep" else ""),
                path=track.folder.root,
            )
        return made[name]

    return make


RAGVAL = Feature(
    extra=ExtraOutputs("truthfulness", FOLDER, made),
    plots={
        name: FeaturePlot(f"RAGVAL: {what}", _plot_named(name))
        for name, what in {
            "means": "the systems' mean scores with 95% intervals",
            "histogram": "how often each sum of both scores was given",
            "sweep": "the systems' mean scores along a parameter",
        }.items()
    },
)
