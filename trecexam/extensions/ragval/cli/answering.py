"""`trecexam ragval answers`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import estimate_json_option, estimate_option, track_argument
from trecexam.cli.signals import exit_status
from trecexam.cli.working import ask, told
from trecexam.tables.terminal import printable
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.extensions.ragval.answering import BoundAnswers


@click.command("answers", epilog="Example: trecexam ragval answers mytrack --estimate")
@track_argument
@estimate_option
@estimate_json_option
def answering(track: Path, estimate: bool, as_json: bool) -> int:
    """Answer the bank's questions with a language model, as the two bounds for systems.

    Writes TRACK/runs/closed-book.jsonl (from the question alone, the lower bound) and
    TRACK/runs/oracle.jsonl (with the question's block, the upper bound), with token counts where a server
    reports them. The model is that of [generator] in trecexam.toml, else the language model of [grader]; use
    the one that your systems use. Answers are stored in TRACK/.trecexam, so each prompt is sent once.

    Exit status: 0, or 1 if a question has no answer.
    """
    with trecexam.open_track(track) as opened:
        calls = opened.ragval.answer, opened.ragval.estimate_answers
        made, caught = ask(*calls, only_estimate=estimate, as_json=as_json)
    if made is None:
        return 0
    for bound in made.bounds:
        _say(bound)
    told(made)
    return exit_status(caught, 0 if made.complete else 1)


def _say(made: BoundAnswers) -> None:
    for question_id, reason in made.unwritten:
        click.echo(printable(f"question {question_id}: {reason}"), err=True)
    if made.cut:
        click.echo(f"{plural(made.cut, 'block')} cut at the end", err=True)
    click.echo(f"{plural(made.answers, 'answer')} ({made.asked:,} new): {made.path}", err=True)
