"""`trecexam exam filter`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trecexam.cli.reading import writing

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(
    "filter",
    epilog="Example: trecexam exam filter mytrack -o filtered",
)
@click.argument("exam", type=click.Path(path_type=Path, exists=True), metavar="EXAM.jsonl|TRACK")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="DIR",
    help="Write kept.jsonl, dropped.jsonl, stats.json, groups.tsv (for `exam fit --groups`) and "
        "queries.tsv (for retrieval) into this folder.",
)  # fmt: skip
@writing
def filtering(exam: Path, output: Path) -> tuple[Result, int]:
    """Remove bad questions from EXAM.jsonl, or from TRACK's exam, and say why.

    \b
    self-contained             the stem names the text it was made from
    length                     stem or candidates are too short or too long
    extra-candidate-jaccard    a wrong candidate is closer to the passage than the right one
    extra-candidate-embedding  the same, by sentence embeddings
    intra-candidate-jaccard    two candidates say nearly the same
    intra-candidate-embedding  the same, by sentence embeddings
    duplicates                 the stem is nearly that of an earlier question

    A line is {"question_id", "question", "choices": [4], "correct": 0..3, "doc_id", "documentation",
    "topic"?}. [exam] in trecexam.toml has the thresholds and the embedding model of a TRACK. Prints how many
    questions each filter removes, and how many only it removes. Exit status 1: no question is left.
    """
    # Imports pydantic.
    from trecexam.extensions.exams.filtering import FILES, filter_exam, write_filtered
    from trecexam.extensions.exams.generating import exam_path
    from trecexam.extensions.exams.settings import ExamSection
    from trecexam.line.protected import refuse_folder
    from trecexam.track import TrackFolder

    refuse_folder(output, (exam, exam / "exam.jsonl"), FILES, always=FILES)
    if exam.is_dir():
        folder = TrackFolder.open(exam)
        filtered = filter_exam(exam_path(folder), folder.config.section(ExamSection), folder.root)
    else:
        filtered = filter_exam(exam)
    write_filtered(filtered, output)
    filtered = replace(filtered, notes=(*filtered.notes, f"written: {output}"))
    return filtered, 0 if any(filtered.stays) else 1
