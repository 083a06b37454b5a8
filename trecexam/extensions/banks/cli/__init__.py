"""`trecexam bank`."""

from __future__ import annotations

import click

from trecexam.cli.main import LazyGroup


@click.group(cls=LazyGroup, epilog="Example: trecexam bank check mytrack")
def bank() -> None:
    """Make, check and compare test banks.

    To remove an item from the track and keep its grades, add "retired": true to its line of the bank.
    """
