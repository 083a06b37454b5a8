"""`trecexam serve-user`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trecexam.cli.lazy import SuggestingGroup
from trecexam.cli.reading import reading
from trecexam.errors import TrecexamError
from trecexam.extensions.page import ROLES, missing_packages
from trecexam.tables.result import Tables
from trecexam.tables.table import Table

if TYPE_CHECKING:
    from trecexam.extensions.page.users import Role

file_argument = click.argument("file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
name_argument = click.argument("name", metavar="NAME")


@click.group(
    "serve-user",
    cls=SuggestingGroup,
    epilog="Example: trecexam serve-user add users.toml ada --role assessor",
)
def serve_user() -> None:
    """Manage who may log in to `trecexam serve --users FILE`, and what they may do.

    Changes apply immediately to a running page.
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
    help="Set the role. assessor: judges, and sees neither runs nor grades; reader: sees all; organizer: "
    "may do all.",
)
@click.option(
    "--proxy-alone", is_flag=True, help="Make no token: a proxy names this person (serve --trust-header)."
)
@click.option("--replace", is_flag=True, help="Replace the user of that name and end their logins.")
def add(file: Path, name: str, role: Role, proxy_alone: bool, replace: bool) -> None:
    """Add NAME to FILE, and print the token to log in with.

    A new FILE is readable by you alone. The token is not stored: send it to that person, alone or as the
    link https://ADDRESS-OF-THE-PAGE/login?token=TOKEN.
    """
    from trecexam.extensions.page.users import add_user

    token = add_user(file, name, role, token=not proxy_alone, replace=replace)
    if token:
        click.echo(token)
        click.echo(
            f"{name} logs in with this token, or opens ADDRESS-OF-THE-PAGE/login?token={token}; "
            "it is not stored, and --replace makes another one",
            err=True,
        )


@serve_user.command("list", epilog="Example: trecexam serve-user list users.toml")
@file_argument
@reading
def list_users(file: Path) -> Tables:
    """List the users in FILE."""
    from trecexam.extensions.page.users import read_users

    rows = tuple((entry.name, entry.role, entry.logs_in_with) for entry in read_users(file).values())
    return Tables({"users": Table(("name", "role", "logs in with"), rows)})


@serve_user.command(epilog="Example: trecexam serve-user remove users.toml ada")
@file_argument
@name_argument
def remove(file: Path, name: str) -> None:
    """Remove NAME from FILE; they are logged out at their next request. Their ratings stay."""
    from trecexam.extensions.page.users import remove_user

    remove_user(file, name)
