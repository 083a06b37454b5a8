"""Shared parts of commands with a writing model: progress, signals, estimates and usage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from converters.errors import ConversionError
from trecexam.cli import bars
from trecexam.cli.reading import answer, on_terminal, write
from trecexam.cli.signals import signals
from trecexam.errors import TrecexamError, cannot_go_on
from trecexam.results.result import Tables
from trecexam.results.table import Table, Value, to_json
from trecexam.results.terminal import printable

if TYPE_CHECKING:
    from trecexam.graders.base import Estimate
    from trecexam.graders.writing.asking import AskingResult
    from trecexam.grades.grading import Progress

Made = TypeVar("Made")


class Working(NamedTuple):
    """Callbacks for long work of a command.

    Attributes:
        progress: displays progress; `steps` takes (prompts answered, prompts in all).
        stop: returns True when the work must stop.
        caught: the signals that stop it.
    """

    progress: Callable[[Progress], None]
    steps: Callable[[int, int], None]
    stop: Callable[[], bool]
    caught: list[int]


@contextmanager
def working(doing: str = "asking", what: str = "prompts") -> Iterator[Working]:
    """Show the progress of work, and stop the work on SIGINT and SIGTERM."""
    # Imports numpy.
    from trecexam.grades.grading import Progress

    with bars.progress(doing, what) as progress, signals() as caught:
        progress(Progress(0, 0, loading=f"the {what}"))
        yield Working(progress, bars.steps(progress), lambda: bool(caught), caught)


def ask(
    do: Callable[..., Made],
    estimate: Callable[..., Estimate],
    *args: object,
    only_estimate: bool,
    as_json: bool,
    **options: object,
) -> tuple[Made | None, list[int]]:
    """Return the result of `do` and the caught signals; None after printing only an estimate.

    Args:
        do, estimate: functions with the same arguments, `args` and `options`.
    """
    if only_estimate or as_json:
        show_estimate(partial(estimate, *args, **options), as_json=as_json)
        return None, []
    with working() as work:
        made = do(*args, **options, progress=work.steps, stop=work.stop)
    return made, work.caught


def told(made: AskingResult[Any], what: str = "") -> None:
    """Print the unanswered prompts, the reason for an early end, and the tokens and cost.

    Args:
        what: noun of unanswered units; "" if another message names them.
    """
    for key, reason in made.unwritten if what else ():
        click.echo(printable(f"{what} {key}: {reason}"), err=True)
    if made.why:
        click.echo(f"ended early: {made.why}", err=True)
    if made.used.requests:
        click.echo(made.used.line(made.cost), err=True)


def show_estimate(estimate: Callable[..., Estimate], *, as_json: bool) -> int:
    """Print the estimate of asking prompts, see `show_estimates`; return the exit status."""
    show_estimates({"": estimate}, {}, as_json=as_json, what="prompt")
    return 0


def show_estimates(
    estimates: Mapping[str, Callable[..., Estimate]],
    banks: Mapping[str, Estimate],
    *,
    as_json: bool,
    what: str = "passage",
) -> None:
    """Print estimates: a row per grader and a sum if there are several.

    Args:
        estimates: name -> returns the grader's estimate.
        banks: name -> estimate for writing the grader's test bank, if it is missing.
        what: noun of the units, such as prompt or passage.
    """
    # Imports all formats, and pydantic.
    from trecexam.graders.base import Estimate as Estimated

    is_one = len(estimates) + len(banks) == 1
    estimate_of = {f"bank of {name}": estimated for name, estimated in banks.items()}
    without: dict[str, Exception] = {}
    for name, ask in estimates.items():
        try:
            estimate_of[name] = ask()
        except (TrecexamError, ConversionError) as error:
            if is_one:
                raise
            without[name] = error
    if not estimate_of:
        for name, reason in without.items():
            click.echo(cannot_go_on(name, reason), err=True)
        raise TrecexamError("no grader of this track can run")
    total = reduce(Estimated.plus, estimate_of.values())
    if not is_one:
        # A partial estimate must not look like the total cost.
        estimate_of["sum" + (f" without grading by {' and '.join(without)}" if without else "")] = total
    heading = {"cells": "prompts" if what == "prompt" else "cells"}
    rows: list[dict[str, Value]] = [{} if is_one else {"grader": name} for name in estimate_of]
    for row, each in zip(rows, estimate_of.values(), strict=True):
        row |= {heading.get(key, key): value for key, value in each._asdict().items()}
    if not as_json:
        _show_estimates(rows)
    for name, reason in without.items():
        why = "known once the bank is written" if name in banks else reason
        click.echo(f"the sum lacks grading by {name}: {why}", err=True)
    if total.tokens_in and total.cost is None:
        click.echo("cost: set `price_in` and `price_out` beside `model` in trecexam.toml", err=True)
    if as_json:
        if without and not is_one:
            rows[-1]["without"] = ", ".join(without)
        write(to_json(rows))


def _show_estimates(rows: Sequence[Mapping[str, Value]]) -> None:
    """Print the rows of an estimate; on a terminal, without empty columns."""
    is_work = any(value for row in rows for value in row.values() if isinstance(value, int))
    heading = "nothing is sent, nothing is stored" if is_work else "nothing is left to do"
    click.echo(f"estimate ({heading}):", err=True)
    used = [key for key in rows[0] if not on_terminal() or any(row[key] is not None for row in rows)]
    table = Table(tuple(used), tuple(tuple(row[key] for key in used) for row in rows))
    answer(Tables({"estimate": table}), wide=True)
