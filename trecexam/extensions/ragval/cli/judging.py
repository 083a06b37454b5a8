"""`trecexam ragval judge`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import track_argument
from trecexam.cli.reading import writing_or_estimating
from trecexam.cli.signals import exit_status
from trecexam.cli.working import show_estimate, used_now, working
from trecexam.tables.terminal import printable
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.extensions.ragval.judging import Judging
    from trecexam.tables.result import Result

#: Of what was not taken, so many are named.
_NAMED = 20


@click.command("judge", epilog="Example: trecexam ragval judge mytrack --estimate")
@track_argument
@writing_or_estimating
def judging(
    track: Path,
    estimate: bool,
    as_json: bool,
) -> tuple[Result | None, int]:
    """Have a judge score the answers in TRACK/runs for truthfulness and relevance, 1 to 5.

    A line of an answer file is {"question_id", "answer", "run_id"?, "n_input_tokens"?, "n_output_tokens"?};
    the bank has the questions with their knowledge blocks. The judge is the language model of [grader] in
    trecexam.toml, as settings there say; what it says is kept, so that none is judged twice. With
    `name = "ragval"` there, `trecexam watch` judges what is dropped. Writes TRACK/out/ragval/ and prints the
    systems as `trecexam ragval report` does.

    Exit status: 0, or 1 when something was rejected or not judged.
    """
    with trecexam.open_track(track) as opened:
        if estimate:
            estimate_of = opened.ragval.estimate_judging
            return None, show_estimate(estimate_of, as_json=as_json, doing="judging", grades=True)
        with working("judging", "judged", "cells") as work:
            made = opened.ragval.judge(progress=work.progress, stop=work.stop)
        folder = opened.folder.out / "ragval"
    _say(made)
    remarks = made.judged.remarks()
    report = None
    if made.report is None:
        for line in (*remarks, "no answers to judge: drop files of them into the folder for runs"):
            click.echo(printable(line), err=True)
    else:
        what = f"{plural(made.graded, 'answer')} judged now" if made.graded else "nothing new to judge"
        notes = (*remarks, *made.report.notes, f"{what}, {len(made.judged.rows):,} in all: {folder}")
        report = replace(made.report, notes=notes)
    whole = made.complete and made.report is not None and not made.rejected
    return report, exit_status(work.caught, 0 if whole else 1)


def _say(made: Judging) -> None:
    for row in made.rejected[:_NAMED]:
        click.echo(printable(f"not taken: {row}"), err=True)
    if len(made.rejected) > _NAMED:
        click.echo(f"not taken: {len(made.rejected) - _NAMED:,} more", err=True)
    if not made.complete:
        click.echo(f"ended early: {made.why or 'stopped'}", err=True)
    if made.usage is not None:
        used_now(made.usage)
