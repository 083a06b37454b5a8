"""`trecexam serve`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trecexam.cli.options import track_argument
from trecexam.errors import TrecexamError
from trecexam.extensions.page import ROLES, missing_packages
from trecexam.extensions.page.front import Front

if TYPE_CHECKING:
    from trecexam.extensions.page.users import Role


@click.command(epilog="Example: trecexam serve mytrack --open")
@track_argument
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
    help="Read who may log in, and their roles, from this file: see `trecexam serve-user`. Replaces the "
    "token.",
)
@click.option(
    "--public-url",
    default="",
    metavar="URL",
    help="Set the address of the page behind a proxy: https://nuggets.uni.edu/trec.",
)
@click.option(
    "--root-path",
    default="",
    metavar="PATH",
    help="Set the path before the page's own, without --public-url.",
)
@click.option(
    "--trusted-proxy",
    "trusted_proxies",
    multiple=True,
    metavar="ADDRESS|NETWORK",
    help="Trust the --trust-header of this proxy. May be repeated.",
)
@click.option(
    "--trust-header",
    default="",
    metavar="NAME",
    help="Read the user's name from this header of the proxy: X-Remote-User.",
)
@click.option(
    "--trusted-role",
    type=click.Choice(ROLES),
    help="Give this role to people whom the proxy names and FILE does not [default: they may not enter].",
)
@click.option("--open", "open_browser", is_flag=True, help="Open the page in a browser.")
def serve(
    track: Path,
    host: str,
    port: int,
    token: str | None,
    users_file: Path | None,
    public_url: str,
    root_path: str,
    trusted_proxies: tuple[str, ...],
    trust_header: str,
    trusted_role: Role | None,
    open_browser: bool,
) -> None:
    """Serve a live page of TRACK: leaderboard, passages, grades, and what to judge next.

    It runs at http://127.0.0.1:8377 until Ctrl-C, and grades nothing: run `trecexam watch TRACK` beside it.
    On a shared machine use --token: everybody there can reach that address. For a team, use --users.
    """
    if token is not None and (users_file or trust_header):
        raise click.UsageError("--users replaces the token: leave --token and TRECEXAM_TOKEN out")
    if trusted_role and not trust_header:
        raise click.UsageError("--trusted-role needs --trust-header")
    if trust_header and not (users_file or trusted_role):
        raise click.UsageError("--trust-header names users: say by --users or --trusted-role what they may")
    missing = missing_packages()
    if missing:
        raise TrecexamError(f"`trecexam serve` {missing}")
    from trecexam.extensions.page.running import serve as run

    run(
        track,
        host,
        port,
        token,
        users_file=users_file,
        front=Front.of(public_url, root_path, trusted_proxies, trust_header),
        trusted_role=trusted_role,
        open_browser=open_browser,
    )
