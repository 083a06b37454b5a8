"""`trecexam serve`."""

from __future__ import annotations

from pathlib import Path

import click

from trecexam.cli.options import grader_option, whole_track_argument
from trecexam.errors import TrecexamError
from trecexam.extensions.page import missing_packages
from trecexam.extensions.page.front import Front


@click.command(epilog="Example: trecexam serve mytrack --open")
@whole_track_argument
@grader_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen at this address.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8377,
    show_default=True,
    help="Listen at this port; 0 picks a free one.",
)
@click.option(
    "--token",
    envvar="TRECEXAM_TOKEN",
    show_envvar=True,
    help="Require this token, at least 22 characters. Beyond this machine, one is made by default. Use the "
    "environment variable: others on this machine can read your command line.",
)
@click.option(
    "--users",
    "users_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help='Let the people in this file log in. A line is ada = "assessor"; the roles are assessor (judges), '
    "reader (sees all) and organizer (does all). Each new person's login link is printed once. Replaces "
    "the token.",
)
@click.option(
    "--public-url",
    default="",
    metavar="URL",
    help="Set the address of the page behind a proxy: https://nuggets.uni.edu/trec.",
)
@click.option("--open", "open_browser", is_flag=True, help="Open the page in a browser.")
def serve(
    track: Path,
    grader: str | None,
    host: str,
    port: int,
    token: str | None,
    users_file: Path | None,
    public_url: str,
    open_browser: bool,
) -> None:
    """Serve a live page of TRACK: leaderboard, passages, grades, and a screen to judge.

    It runs at http://127.0.0.1:8377 until Ctrl-C, and grades nothing: run `trecexam watch TRACK` beside it.
    On a shared machine use --token: everybody there can reach that address. For a team, use --users.
    """
    if token is not None and users_file:
        raise click.UsageError("--users replaces the token: leave --token and TRECEXAM_TOKEN out")
    missing = missing_packages()
    if missing:
        raise TrecexamError(f"`trecexam serve` {missing}")
    from trecexam.extensions.page.running import serve as run

    run(
        track,
        host,
        port,
        token,
        grader=grader,
        users_file=users_file,
        front=Front.of(public_url),
        open_browser=open_browser,
    )
