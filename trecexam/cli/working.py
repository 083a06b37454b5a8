"""Commands that have a model write: their progress, the signals that stop them, and what it took."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from trecexam.cli import bars, show
from trecexam.cli.signals import signals
from trecexam.errors import TrecexamError, cannot_go_on
from trecexam.tables.table import Table, Value
from trecexam.tables.terminal import printable
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from converters.errors import ConversionError
    from trecexam.graders.base import Estimate
    from trecexam.graders.meter import MeasuredTime, Usage
    from trecexam.graders.writing.asking import AskingResult
    from trecexam.line.grading import Progress

Made = TypeVar("Made")
#: Of the lines that were rejected, so many are named.
_NAMED = 20


class Working(NamedTuple):
    """What a command gives to what it starts.

    Attributes:
        progress: to be told how far it is; `steps`, how many of how many prompts are answered.
        stop: whether it is to stop.
        caught: the signals that said so.
    """

    progress: Callable[[Progress], None]
    steps: Callable[[int, int], None]
    stop: Callable[[], bool]
    caught: list[int]


@contextmanager
def working(doing: str = "asking", what: str = "prompts") -> Iterator[Working]:
    """Shows how far asking is, and stops it on SIGINT and SIGTERM."""
    # Imports numpy.
    from trecexam.line.grading import Progress

    stopped: list[bool] = []
    with bars.progress(doing, what) as progress, signals(lambda: stopped.append(True)) as caught:
        progress(Progress(0, 0, loading=f"the {what}"))
        yield Working(progress, bars.steps(progress), lambda: bool(stopped), caught)


def ask(
    do: Callable[..., Made],
    estimate: Callable[..., Estimate],
    *args: object,
    only_estimate: bool,
    as_json: bool,
    **options: object,
) -> tuple[Made | None, list[int]]:
    """What asking came to, and the signals that stopped it; None where only an estimate is shown.

    Args:
        do, estimate: calls with the same arguments, which are `args` and `given`.
    """
    if only_estimate or as_json:
        show_estimate(partial(estimate, *args, **options), as_json=as_json)
        return None, []
    with working() as work:
        made = do(*args, **options, progress=work.steps, stop=work.stop)
    return made, work.caught


def told(made: AskingResult[Any], what: str = "") -> None:
    """Says what has no answer, why asking ended early, and what it took.

    Args:
        what: is named where it has no answer; "" where that is said elsewhere.
    """
    for key, reason in made.unwritten if what else ():
        click.echo(printable(f"{what} {key}: {reason}"), err=True)
    if made.why:
        click.echo(f"ended early: {made.why}", err=True)
    used(made.used, made.cost)


def show_estimate(
    estimate: Callable[..., Estimate],
    *,
    as_json: bool = False,
    doing: str = "asking",
    what: str = "prompt",
) -> int:
    """Print an estimate, then the time, which takes seconds to measure; return the exit status.

    In JSON, `minutes` is the time and `measured` the cells or prompts of the sample behind it; both are null
    where the time is not known.

    Args:
        estimate: returns the estimate; with `timed` it measures the time, too.
        doing: the work, as "asking"; `what` is the noun of a unit: prompt, passage.
    """
    estimated = estimate()
    columns = estimated.columns()
    if what == "prompt":
        columns = {"prompts": columns.pop("cells"), **columns}
    if not as_json:
        _show_estimates([columns])
    sample = _time_of(estimate, estimated, doing, what)
    _unpriced(estimated)
    if as_json:
        minutes = None if sample is None else round(sample.seconds / 60, 2)
        row = {**columns, "minutes": minutes, "measured": None if sample is None else sample.cells}
        show.table(_table([row]), as_json=True, json_value=[row])
    return 0


def show_several_estimates(
    estimates: Mapping[str, Callable[..., Estimate]],
    banks: Mapping[str, Estimate],
    *,
    as_json: bool,
) -> None:
    """Print an estimate of grading a track with several graders: a row for each, and a sum.

    Args:
        estimates: name -> returns the grader's estimate; with `timed` it measures the time, too.
        banks: name -> the estimate of writing the grader's test bank, where it has none.
    """
    # Imports all formats, and pydantic.
    from converters.errors import ConversionError
    from trecexam.graders.base import Estimate as Estimated

    estimate_of = {f"bank of {name}": estimated for name, estimated in banks.items()}
    without: dict[str, Exception] = {}
    for name, ask in estimates.items():
        try:
            estimate_of[name] = ask()
        except (TrecexamError, ConversionError) as error:
            without[name] = error
    if not estimate_of:
        for name, reason in without.items():
            click.echo(cannot_go_on(name, reason), err=True)
        raise TrecexamError("no grader of this track can run")
    # Nobody must take a part of the work for the bill.
    lacks = f" without grading by {' and '.join(without)}" if without else ""
    total = estimate_of[f"sum{lacks}"] = reduce(Estimated.plus, estimate_of.values())
    keys = list(dict.fromkeys(key for each in estimate_of.values() for key in each.columns()))
    rows: list[dict[str, Value]] = [
        {"grader": name, **dict.fromkeys(keys), **each.columns()} for name, each in estimate_of.items()
    ]
    if not as_json:
        _show_estimates(rows)
    if no_bank := [name for name in without if name in banks]:
        names = " and ".join(no_bank)
        click.echo(f"the sum lacks grading by {names}: known once the bank is written", err=True)
    for name, reason in without.items():
        if name not in banks:
            click.echo(f"the sum lacks grading by {name}: {reason}", err=True)
    for name, row in zip(estimate_of, rows, strict=True):
        row["minutes"] = None
        if name not in estimates:
            continue
        sample = _time_of(estimates[name], estimate_of[name], f"grading by {name}", "passage")
        row["minutes"] = None if sample is None else round(sample.seconds / 60, 2)
    _unpriced(total)
    if as_json:
        minutes = [row["minutes"] for row in rows[:-1] if isinstance(row["minutes"], float)]
        rows[-1]["minutes"] = sum(minutes) if minutes else None
        rows[-1] |= {"without": ", ".join(without)} if without else {}
        show.table(_table(rows), as_json=True, json_value=rows)


def _show_estimates(rows: Sequence[Mapping[str, Value]]) -> None:
    """Print the rows of an estimate; on a terminal, without columns that are empty everywhere."""
    is_work = any(value for row in rows for value in row.values() if isinstance(value, int))
    heading = "nothing is sent, nothing is stored" if is_work else "nothing is left to do"
    click.echo(f"estimate ({heading}):", err=True)
    if show.on_terminal():
        used = [key for key in rows[0] if any(row[key] is not None for row in rows)]
        rows = [{key: row[key] for key in used} for row in rows]
    show.table(_table(rows))


def _table(rows: Sequence[Mapping[str, Value]]) -> Table:
    return Table(tuple(rows[0]), tuple(tuple(row.values()) for row in rows))


def _unpriced(estimated: Estimate) -> None:
    if estimated.tokens_in and estimated.cost is None:
        click.echo("cost: set `price_in` and `price_out` beside `model` in trecexam.toml", err=True)


def _time_of(
    estimate: Callable[..., Estimate], estimated: Estimate, doing: str, what: str
) -> MeasuredTime | None:
    """Print and return the time of work, by a sample; None if unknown, and of what counts tokens."""
    # Imports numpy.
    from trecexam.line.grading import Progress

    if not estimated.cells or estimated.tokens_in is not None:
        return None
    try:
        with bars.progress() as show_progress:
            show_progress(Progress(0, 0, loading="the model"))
            sample = estimate(timed=True).time
    except TrecexamError as error:
        click.echo(f"no time can be measured here: {error}", err=True)
        return None
    if sample is not None:
        of = "" if what == "prompt" else f"{plural(sample.cells, 'cell')} of "
        click.echo(
            f"{doing} would take about {bars.duration(sample.seconds)}: a sample took {sample.start:.1f} s "
            f"until the first {what}, then {sample.pace:.1f} s for {of}{plural(sample.passages, what)}",
            err=True,
        )
    return sample


def not_taken(errors: Sequence[ConversionError]) -> None:
    """Names the lines that were rejected; of many the first."""
    for error in errors[:_NAMED]:
        click.echo(printable(f"rejected: {error}"), err=True)
    if len(errors) > _NAMED:
        click.echo(f"rejected: {len(errors) - _NAMED:,} more lines", err=True)


def used(usage: Usage, cost: float | None) -> None:
    """Says what asking took, where that is counted."""
    if usage.requests:
        click.echo(usage.line(cost), err=True)
