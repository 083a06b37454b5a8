"""`trecexam judge`."""

from __future__ import annotations

import click

from trecexam.cli.lazy import LazyGroup


@click.group(
    cls=LazyGroup,
    epilog="Example: trecexam judge plan mytrack --assessors ada,bob,eve --topics-each 10 --overlap 10%",
)
def judge() -> None:
    """Run a campaign of assessors: plan, agreement, and judgments as files."""
