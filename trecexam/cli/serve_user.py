"""`trecexam serve-user`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trecexam.cli import show
from trecexam.cli.lazy import SuggestingGroup
from trecexam.cli.options import json_option
from trecexam.errors import TrecexamError
from trecexam.serving import ROLES, missing_packages
from trecexam.tables.table import Table

if TYPE_CHECKING:
    from trecexam.serving.users import Role

file_argument = click.argument("file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
name_argument = click.argument("name", metavar="NAME")


@click.group(
    "serve-user",
    cls=SuggestingGroup,
    epilog="Example: trecexam serve-user add users.toml ada --role assessor",
)
def serve_user() -> None:
    """Who may log in to `trecexam serve --users FILE`, and what they may do.

    A page that is served takes up each change at once.
    """
    missing = missing_packages()
    if missing:
        raise TrecexamError(f"`trecexam serve-user` {missing}")


@serve_user.command(epilog="Example: trecexam serve-user add users.toml ada --role assessor")
@file_argument
@name_argument
@click.option(
    "--role",
    type=click.Choice(ROLES),
    required=True,
    help="assessor: judges, and sees neither runs nor grades; reader: sees all; organizer: may do all.",
)
@click.option("--token", is_flag=True, help="Make and print a token to log in with, in place of a password.")
@click.option(
    "--password-stdin", is_flag=True, help="Read the password from stdin, one line; else it is asked."
)
@click.option(
    "--proxy-alone", is_flag=True, help="Neither: a proxy says who they are (serve --trust-header)."
)
@click.option("--replace", is_flag=True, help="In place of the user of that name: their logins end.")
def add(
    file: Path, name: str, role: Role, token: bool, password_stdin: bool, proxy_alone: bool, replace: bool
) -> None:
    """Add NAME to FILE, which is made where there is none, readable by you alone."""
    from trecexam.serving.users import add_user, checked_new

    if token + password_stdin + proxy_alone > 1:
        raise click.UsageError("give one of --token, --password-stdin and --proxy-alone")
    # Before a password is typed in vain.
    checked_new(file, name, replace=replace)
    password = ""
    if password_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    elif not (token or proxy_alone):
        if not sys.stdin.isatty():
            raise click.UsageError("no terminal to ask a password at: give --password-stdin or --token")
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    if not (password or token or proxy_alone):
        raise click.UsageError("the password is empty")
    made = add_user(file, name, role, password=password, token=token, replace=replace)
    if made:
        click.echo(made)
        click.echo(f"{name} logs in with that token; it is kept nowhere", err=True)


@serve_user.command("list", epilog="Example: trecexam serve-user list users.toml")
@file_argument
@json_option
def list_users(file: Path, as_json: bool) -> None:
    """The users in FILE."""
    from trecexam.serving.users import read_users

    rows = tuple((entry.name, entry.role, entry.logs_in_with) for entry in read_users(file).values())
    show.table(Table(("name", "role", "logs in with"), rows), as_json=as_json)


@serve_user.command(epilog="Example: trecexam serve-user remove users.toml ada")
@file_argument
@name_argument
def remove(file: Path, name: str) -> None:
    """Remove NAME from FILE: out with the next click. Ratings stay."""
    from trecexam.serving.users import remove_user

    remove_user(file, name)
