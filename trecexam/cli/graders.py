"""`trecexam graders`."""

from __future__ import annotations

import click

from trecexam.cli import show
from trecexam.cli.options import json_option
from trecexam.graders import available
from trecexam.reports.tables import Table


@click.command(epilog="Example: trecexam graders")
@json_option
def graders(as_json: bool) -> None:
    """What can grade here, and what the rest needs."""
    rows = tuple(
        (name, "yes" if not (missing := factory.missing()) else "no", factory.summary, missing)
        for name, factory in available().items()
    )
    show.table(Table(("grader", "available", "what", "missing"), rows), as_json=as_json)
