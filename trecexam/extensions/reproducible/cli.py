"""`trecexam verify reproducible`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli import bars
from trecexam.cli.options import track_argument
from trecexam.cli.reading import writing
from trecexam.cli.signals import exit_status, signals
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.api import Track
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam verify reproducible mytrack --sample 200")
@track_argument
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar="N",
    help="Grade this many graded cells again, drawn by a hash: the same ones every time.",
)
@click.option("--yes", is_flag=True, help="Run a grader that costs; without it, a terminal prompts first.")
@writing
def reproducible(track: Path, sample: int, yes: bool) -> tuple[Result, int]:
    """Check whether a cell gets the same answer again, whatever else is in its batch.

    Grades a sample of graded cells twice, each alone and all together. Reports how many answers, ratings and
    probabilities differ in the last bit, the largest difference of a probability, and the share of cells
    with any difference. Stores nothing. A server gets two requests per cell, which no budget counts.

    Exit status: 0, or 1 if an answer differs or is missing.
    """
    stopped: list[bool] = []
    with trecexam.open_track(track) as opened:
        _agree_to_cost(opened, sample, yes=yes)
        with (
            bars.grading(done="graded again", what="cells") as progress,
            signals(lambda: stopped.append(True)) as caught,
        ):
            done = opened.verify.reproducible(sample=sample, progress=progress, stop=lambda: bool(stopped))
    return done, exit_status(caught, 0 if done.same else 1)


def _agree_to_cost(track: Track, sample: int, *, yes: bool) -> None:
    """Prints the cost of a paid grader, and asks for confirmation."""
    estimated = track.verify.estimate_reproducible(sample=sample)
    if estimated.tokens_in is None:
        return
    calls = estimated.cells if estimated.calls is None else estimated.calls
    cost = "" if estimated.cost is None else f", cost {estimated.cost:.4g}"
    click.echo(
        f"this asks a server about {plural(calls, 'prompt')}: some {estimated.tokens_in:,} tokens in, "
        f"{estimated.tokens_out:,} out{cost}",
        err=True,
    )
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("add --yes to run it")
    if not yes:
        click.confirm("Ask?", abort=True, err=True)
