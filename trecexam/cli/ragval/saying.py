"""What the commands that ask models have to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from trecexam.graders.base import Usage


def used(usage: Usage, cost: float | None) -> None:
    """Says what asking took, where that is counted."""
    if usage.requests:
        money = "" if cost is None else f", cost {cost:.4g}"
        click.echo(
            f"{usage.requests:,} requests, {usage.tokens_in:,} tokens in, {usage.tokens_out:,} out{money}",
            err=True,
        )
