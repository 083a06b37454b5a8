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
    epilog="Example: trecexam exam filter mytrack/exam.jsonl -o filtered",
)
@click.argument("exam", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="EXAM.jsonl")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="DIR",
    help="Write kept.jsonl, dropped.jsonl, groups.tsv (for `exam fit --groups`) and queries.tsv (for "
        "retrieval) into this folder.",
)  # fmt: skip
@writing
def filtering(exam: Path, output: Path) -> tuple[Result, int]:
    """Remove questions from EXAM.jsonl that refer to the text they were made from, and say why.

    A line is {"question_id", "question", "choices": [4], "correct": 0..3, "doc_id", "documentation",
    "topic"?}. Prints the removed questions. Exit status 1: no question is left.
    """
    # Imports pydantic.
    from trecexam.extensions.exams.filtering import FILES, filter_exam, write_filtered
    from trecexam.line.protected import refuse_folder

    refuse_folder(output, (exam,), FILES, always=FILES)
    filtered = filter_exam(exam)
    write_filtered(filtered, output)
    filtered = replace(filtered, notes=(*filtered.notes, f"written: {output}"))
    return filtered, 0 if filtered.kept else 1
