"""`trecexam watch`."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trecexam.cli import bars
from trecexam.cli.options import (
    estimate_json_option,
    grader_option,
    open_chosen,
    refuse_nan,
    whole_track_argument,
)
from trecexam.cli.signals import exit_status, signals
from trecexam.cli.working import show_estimates
from trecexam.extension import provided

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from trecexam.graders.base import Estimate
    from trecexam.outputs.grader_update import Update
    from trecexam.track import Track


@click.command(epilog="Example: trecexam watch mytrack --once")
@whole_track_argument
@grader_option
@click.option("--once", is_flag=True, help="Bring out/ up to date with the current files, then exit.")
@click.option(
    "--estimate",
    is_flag=True,
    help="Print the number of cells and, of a server, calls, tokens and the cost. Sends and stores nothing.",
)
@click.option(
    "--retry-errors",
    is_flag=True,
    help="Grade cells again whose answers are errors (texts that a server rejected), and all cells of a "
    "grader without any readable reply; ask again for a missing test bank where answers have no items. "
    "With --estimate, count cells and forget nothing.",
)
@click.option(
    "--regrade",
    is_flag=True,
    help="Grade and pay again if the store of grades is missing or older than the outputs.",
)
@click.option(
    "--poll",
    is_flag=True,
    help="Check for new files every few seconds, without file events (for network file systems).",
)
@click.option(
    "--settle",
    type=click.FloatRange(min=0),
    callback=refuse_nan,
    metavar="SECONDS",
    help="Read a dropped file after this time without a change [default: the track's, 2].",
)
@estimate_json_option
def watch(
    track: Path,
    grader: str | None,
    once: bool,
    estimate: bool,
    retry_errors: bool,
    regrade: bool,
    poll: bool,
    settle: float | None,
    as_json: bool,
) -> int:
    """Grade what is new in TRACK and keep TRACK/out up to date.

    Runs until Ctrl-C or SIGTERM, which finish the current batch and write the outputs; with --once, until
    everything is graded.

    Exit status: 0; with --once 1 if an input was rejected (see out/rejected.tsv), grading ended early, or
    one of several graders failed; 2 if no grader can run; 130 after Ctrl-C. A grader that waits for a test
    bank or a language model has not failed: it is named, and the others continue.
    """
    # Imports the whole of trecexam, which --help must not load.
    from trecexam.daemon import Daemon

    with open_chosen(track, grader) as opened:
        if estimate or as_json:
            names = opened.graders if grader is None else (grader,)
            estimates = {name: partial(_of_grader, opened, name, retry_errors) for name in names}
            show_estimates(estimates, opened.grading.estimate_banks(), as_json=as_json)
            return 0
        if retry_errors:
            forgotten = opened.grading.forget_errors()
            click.echo(f"{forgotten:,} answers forgotten; these will be asked for again", err=True)
        if once:
            return _once(opened, regrade=regrade)
    with bars.progress() as progress:
        daemon = Daemon(
            track, poll=poll, settle=settle, log=bars.log, progress=progress, regrade=regrade, grader=grader
        )
        with signals(daemon.stop, lambda: daemon.doing) as caught:
            daemon.run()
    bars.log("stopped")
    return 130 if signal.SIGINT in caught else 0


def _of_grader(track: Track, name: str, retry_errors: bool) -> Estimate:
    return track[name].estimate(retry_errors=retry_errors)


def _once(track: Track, *, regrade: bool) -> int:
    update, caught = update_once(track, regrade=regrade)
    status = print_update(track, update, caught)
    # Imports pydantic, which --help must not load.
    from trecexam.folder import PACK

    if (track.folder.root / PACK).is_file() and not caught:
        click.echo(provided("packs").differences(track.folder), err=True)
    return status


def update_once(track: Track, *, regrade: bool = False) -> tuple[Update, list[int]]:
    """Bring out/ up to date, and return what the update did and the signals that it caught."""
    stages = [""]
    with bars.progress() as progress, signals(finishing=lambda: stages[-1]) as caught:
        update = track.update(
            progress=progress, stop=lambda: bool(caught), doing=stages.append, regrade=regrade
        )
    return update, caught


def print_update(
    track: Track, update: Update, caught: Sequence[int], printed_later: Collection[str] = ()
) -> int:
    """Print what an update did, and return the exit status of the command.

    Args:
        printed_later: Notes that the command prints below the update.
    """
    from trecexam.daemon import describe
    from trecexam.folder import settings_caution

    if caution := settings_caution(track.folder):
        click.echo(caution, err=True)
    for row in update.rejected:
        click.echo(f"rejected: {row}", err=True)
    for note in (*update.notes, *update.cautions):
        if note not in printed_later:
            click.echo(f"note: {note}", err=True)
    if update.changed:
        for line in describe(update):
            click.echo(line, err=True)
    else:
        click.echo(f"nothing new; {track.folder.shared_out} is up to date", err=True)
        if update.why:
            click.echo(update.why, err=True)
    return exit_status(caught, 1 if update.rejected or update.why else 0)
