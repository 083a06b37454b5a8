"""`trecexam exam generate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import trecexam
from trecexam.cli.options import estimate_json_option, estimate_option, output_path, track_argument
from trecexam.cli.signals import exit_status
from trecexam.cli.working import ask, told
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.extensions.exams.generating import GeneratedExam
    from trecexam.extensions.exams.refilling import RefilledExam

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(
    "generate", epilog='Example: trecexam exam generate mytrack --domain "manuals of heat pumps" --estimate'
)
@track_argument
@click.option(
    "--domain", required=True, metavar="TEXT", help="Describe the passages: `task_domain` of the prompt."
)
@click.option(
    "--again",
    is_flag=True,
    help="Rewrite the wrong candidates of the existing exam that fail a filter ([exam] of trecexam.toml).",
)
@estimate_option
@click.option(
    "-o",
    "--output",
    type=_FILE,
    metavar="FILE",
    callback=output_path,
    help="Write the exam to this file [default: TRACK/exam.jsonl].",
)
@estimate_json_option
def generating(
    track: Path,
    domain: str,
    again: bool,
    output: Path | None,
    estimate: bool,
    as_json: bool,
) -> int:
    """Write a multiple-choice question about each passage of TRACK with a language model.

    The model is that of [generator] in trecexam.toml, else the language model of [grader]. Each question
    keeps its passage and the model's text. Unreadable answers go to exam.unread.jsonl next to the exam,
    counts to exam.generation.json. Answers are stored in TRACK/.trecexam, so each prompt is sent once: run
    it again to continue. --again replaces the wrong candidates of questions that fail only by these.

    Exit status: 0, or 1 if a passage (with --again: a question) was not processed, or no question could be
    read.
    """
    form: dict[str, Any] = {"only_estimate": estimate, "as_json": as_json, "output": output}
    with trecexam.open_track(track) as opened:
        exam = opened.exam
        if again:
            refilled, caught = ask(exam.refill, exam.estimate_refilling, domain, **form)
            return 0 if refilled is None else exit_status(caught, _say_refilled(refilled, track))
        made, caught = ask(exam.generate, exam.estimate, domain, **form)
        return 0 if made is None else exit_status(caught, _say(made, track))


def _say_refilled(made: RefilledExam, track: Path) -> int:
    told(made, "question")
    click.echo(
        f"{plural(len(made.refilled), 'question')} of {len(made.failing):,} with bad wrong candidates "
        f"rewritten ({plural(made.asked, 'new answer')}), {made.hopeless:,} bad for other reasons: "
        f"{made.output}; {_next(made.output, track)}",
        err=True,
    )
    return 0 if made.complete else 1


def _next(output: Path, track: Path) -> str:
    # The track's exam is filtered by the track's settings.
    what = track if output == track / "exam.jsonl" else output
    return f"next: trecexam exam filter {what} -o DIR"


def _say(made: GeneratedExam, track: Path) -> int:
    told(made, "passage")
    for reason, number in made.badly_parsed.items():
        click.echo(f"no question in {plural(number, 'answer')}: {reason}", err=True)
    if not made.questions:
        click.echo(_without_questions(made), err=True)
        return 1
    click.echo(
        f"{plural(len(made.questions), 'question')} ({plural(made.asked, 'new answer')}): {made.output}; "
        f"{_next(made.output, track)}",
        err=True,
    )
    return 0 if made.complete else 1


def _without_questions(made: GeneratedExam) -> str:
    # Imports pydantic.
    from trecexam.extensions.exams.filtering import companion_file
    from trecexam.extensions.exams.generating import UNREAD

    unchanged = f"{made.output} is unchanged" if made.output.exists() else f"{made.output} was not written"
    if not made.badly_parsed:
        return f"no passage has an answer; {unchanged}: run it again"
    unread = companion_file(made.output, UNREAD)
    return (
        f"no answer could be read as a question; {unchanged}: look at the answers in {unread}, then name "
        "another model in [generator] or raise its max_new_tokens"
    )
