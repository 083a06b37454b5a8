"""Commands that have a model write: their progress, the signals that stop them, and what it took."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import click

from trecexam.cli import show
from trecexam.cli.signals import signals
from trecexam.tables.table import Table
from trecexam.tables.terminal import printable

if TYPE_CHECKING:
    from converters.errors import ConversionError
    from trecexam.graders.base import Estimate, Usage

#: Of the lines that were not taken, so many are named.
_NAMED = 20


class Working(NamedTuple):
    """What a command gives to what it starts.

    Attributes:
        progress: to be told how many of how many prompts are answered.
        stop: whether it is to stop.
        caught: the signals that said so.
    """

    progress: Callable[[int, int], None]
    stop: Callable[[], bool]
    caught: list[int]


@contextmanager
def working() -> Iterator[Working]:
    """Shows how far asking is, and stops it on SIGINT and SIGTERM."""
    stopped: list[bool] = []
    with (
        show.grading("asking", "asked", "prompts") as shown,
        signals(lambda: stopped.append(True)) as caught,
    ):
        yield Working(show.steps(shown), lambda: bool(stopped), caught)


def show_estimate(estimated: Estimate) -> int:
    """Shows what asking would take; the exit status."""
    show.table(Table(("prompts", *estimated._fields[1:]), (tuple(estimated),)))
    return 0


def not_taken(errors: Sequence[ConversionError]) -> None:
    """Names the lines that were not taken; of many the first."""
    for error in errors[:_NAMED]:
        click.echo(printable(f"not taken: {error}"), err=True)
    if len(errors) > _NAMED:
        click.echo(f"not taken: {len(errors) - _NAMED:,} more lines", err=True)


def used(usage: Usage, cost: float | None) -> None:
    """Says what asking took, where that is counted."""
    if usage.requests:
        money = "" if cost is None else f", cost {cost:.4g}"
        click.echo(
            f"{usage.requests:,} requests, {usage.tokens_in:,} tokens in, {usage.tokens_out:,} out{money}",
            err=True,
        )
