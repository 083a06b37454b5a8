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
    from trecexam.extensions.ragval.answering import Bound, BoundAnswers


@click.command("answers", epilog="Example: trecexam ragval answers mytrack --estimate")
@track_argument
@click.option("--closed-book", is_flag=True, help="From the question alone: the lower bound.")
@click.option("--oracle", is_flag=True, help="With the question's block: the upper bound.")
@estimate_option
@estimate_json_option
def answering(track: Path, closed_book: bool, oracle: bool, estimate: bool, as_json: bool) -> int:
    """Have a language model answer the bank's questions: the two bounds that systems are compared with.

    Writes TRACK/runs/closed-book.jsonl and TRACK/runs/oracle.jsonl, or the one that is named, with the tokens
    where a server counts them. Who answers is said in [generator] of trecexam.toml, or else is the language
    model of [grader]: take the one that your systems use. Answers are kept in TRACK/.trecexam, so that none
    is asked for twice.

    Exit status: 0, or 1 when a question has got no answer.
    """
    chosen: list[Bound] = []
    if closed_book or not oracle:
        chosen.append("closed-book")
    if oracle or not closed_book:
        chosen.append("oracle")
    with trecexam.open_track(track) as opened:
        calls = opened.ragval.answer, opened.ragval.estimate_answers
        made, caught = ask(*calls, chosen, only_estimate=estimate, as_json=as_json)
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
