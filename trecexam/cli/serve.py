"""`trecexam serve`."""

from __future__ import annotations

from pathlib import Path

import click

from trecexam.cli.options import track_argument, trust_code_option
from trecexam.errors import TrecexamError
from trecexam.serving import missing_packages


@click.command(epilog="Example: trecexam serve mytrack --open")
@track_argument
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8377, show_default=True, help="0: any that is free."
)
@click.option(
    "--token",
    envvar="TRECEXAM_TOKEN",
    show_envvar=True,
    help="What people must show to see the page. Beyond this machine one is made where none is given. Better "
    "in the environment: others on this machine can read your command line.",
)
@click.option("--open", "open_browser", is_flag=True, help="Open the page in a browser.")
@click.option("--no-grade", is_flag=True, help="Grade nothing, also where no `trecexam watch` is at work.")
@trust_code_option
def serve(
    track: Path,
    host: str,
    port: int,
    token: str | None,
    open_browser: bool,
    no_grade: bool,
    trust_code: bool,
) -> None:
    """A page of TRACK for people: leaderboard, passages, grades, and what to judge next.

    It is at http://127.0.0.1:8377 until Ctrl-C. On a machine that others use too, give it a token: everybody
    there can reach that address.
    """
    missing = missing_packages()
    if missing:
        raise TrecexamError(f"`trecexam serve` {missing}")
    from trecexam.serving.running import serve as run

    run(track, host, port, token, open_browser=open_browser, grade=not no_grade, trust_code=trust_code)
