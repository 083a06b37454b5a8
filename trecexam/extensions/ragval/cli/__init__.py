"""`trecexam ragval`."""

from __future__ import annotations

import click

from trecexam.cli.main import LazyGroup


@click.group(cls=LazyGroup, epilog="Example: trecexam ragval questions mytrack")
def ragval() -> None:
    """Evaluate answers about knowledge blocks for truthfulness and relevance (RAGVAL)."""
