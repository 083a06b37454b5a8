"""`trecexam exam generate` and `filter`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trecexam.cli.options import (
    estimate_json_option,
    estimate_option,
    output_folder_option,
    output_option,
    track_argument,
)
from trecexam.cli.reading import writing
from trecexam.cli.signals import exit_status
from trecexam.cli.working import ask, told
from trecexam.errors import quoted
from trecexam.extensions.exams.filtering import FILES, filter_exam, write_filtered
from trecexam.results.text import LOST, Note, plural

if TYPE_CHECKING:
    from trecexam.extensions.exams.generating import GeneratedExam
    from trecexam.results.result import Result
    from trecexam.track import Track


@click.command(
    "generate", epilog='Example: trecexam exam generate mytrack --domain "manuals of heat pumps" --estimate'
)
@track_argument
@click.option(
    "--domain", required=True, metavar="TEXT", help="Describe the passages: `task_domain` of the prompt."
)
@estimate_option
@output_option("Write the exam to this file [default: TRACK/exam.jsonl].")
@estimate_json_option
def generating(
    track: Track,
    domain: str,
    output: Path | None,
    estimate: bool,
    as_json: bool,
) -> int:
    """Write a multiple-choice question about each passage of TRACK with a language model.

    The model is that of [generator] in trecexam.toml, else the language model of [grader]. Each question
    keeps its passage and the model's text. Unreadable answers go to exam.unread.jsonl next to the exam,
    counts to exam.generation.json. Answers are stored in TRACK/.trecexam, so each prompt is sent once: run
    it again to continue.

    Exit status: 0, or 1 if a passage was not processed, or no question could be read.
    """
    form: dict[str, Any] = {"only_estimate": estimate, "as_json": as_json, "output": output}
    exam = track.exam
    made, caught = ask(exam.generate, exam.estimate, domain, **form)
    return 0 if made is None else exit_status(caught, _say(made))


def _say(made: GeneratedExam) -> int:
    told(made, "passage")
    for reason, number in made.badly_parsed.items():
        click.echo(f"no question in {plural(number, 'answer')}: {reason}", err=True)
    if not made.questions:
        click.echo(_without_questions(made), err=True)
        return 1
    click.echo(
        f"{plural(len(made.questions), 'question')} ({plural(made.asked, 'new answer')}): {made.output}; "
        f"next: trecexam exam filter {quoted(made.output)} -o DIR",
        err=True,
    )
    return 0 if made.complete else 1


def _without_questions(made: GeneratedExam) -> str:
    unchanged = f"{made.output} is unchanged" if made.output.exists() else f"{made.output} was not written"
    if not made.badly_parsed:
        return f"no passage has an answer; {unchanged}: run it again"
    return (
        f"no answer could be read as a question; {unchanged}: look at the answers in {made.unread_file}, "
        "then name another model in [generator] or raise its max_new_tokens"
    )


@click.command(
    "filter",
    epilog="Example: trecexam exam filter mytrack/exam.jsonl -o filtered",
)
@click.argument("exam", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="EXAM.jsonl")
@output_folder_option(
    "Write kept.jsonl, dropped.jsonl, groups.tsv (for `exam fit --groups`) and queries.tsv (for retrieval) "
    "into this folder.",
)
@writing
def filtering(exam: Path, output: Path) -> tuple[Result, int]:
    """Remove questions from EXAM.jsonl that refer to the text they were made from, and say why.

    A line is {"question_id", "question", "choices": [4], "correct": 0..3, "doc_id", "documentation",
    "topic"?}. Prints the removed questions. Exit status 1: no question is left.
    """
    # Imports pydantic.
    from trecexam.inputs.protected import refuse_folder

    refuse_folder(output, (exam,), FILES, always=FILES)
    filtered = filter_exam(exam)
    write_filtered(filtered, output)
    filtered = replace(filtered, notes=(*filtered.notes, Note(f"written: {output}", LOST)))
    return filtered, 0 if filtered.kept else 1
