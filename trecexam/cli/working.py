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
    from trecexam.graders.base import Estimate, Usage
    from trecexam.graders.sampling import MeasuredTime
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
    stopped: list[bool] = []
    with bars.progress(doing, what) as progress, signals(lambda: stopped.append(True)) as caught:
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
) -> int:
    """Shows what asking would take, and how long as far as that is known; the exit status.

    Args:
        estimate: estimates; with `timed` it measures the time, too.
        doing: what would take that long.
    """
    estimated = estimate()
    columns = estimated.columns()
    named = dict(zip(("prompts", *[*columns][1:]), columns.values(), strict=True))
    time: Callable[[], MeasuredTime | None] = partial(
        _measured_time, lambda: estimate(timed=True).time, doing, "tried", "prompt"
    )
    if estimated.tokens_in is not None:
        time = _unmeasured
    show_columns(named, time, as_json=as_json)
    return 0


def show_grading_estimate(
    estimated: Estimate, measure: Callable[[], MeasuredTime | None], *, as_json: bool = False
) -> None:
    """As `show_estimate`, of what grading a track would take."""
    time: Callable[[], MeasuredTime | None] = partial(
        _measured_time, measure, "grading", "graded", "passage", cells=True
    )
    if estimated.tokens_in is not None:
        time = _unmeasured
    show_columns(estimated.columns(), time, as_json=as_json)


def show_several_estimates(
    estimates: Mapping[str, Callable[[], tuple[Estimate, Callable[[], MeasuredTime | None]]]],
    banks: Mapping[str, Estimate],
    *,
    as_json: bool,
) -> None:
    """Shows what grading a track with several graders would take: a row for each, and a sum.

    Args:
        estimates: name -> gives what it would take, and measures how long. Who cannot go on is named.
        banks: name -> what writing the grader's test bank would take, where it has none.
    """
    # Imports all formats, and pydantic.
    from converters.errors import ConversionError
    from trecexam.graders.base import Estimate as Estimated

    estimate_of = {f"bank of {name}": estimated for name, estimated in banks.items()}
    measures: dict[str, Callable[[], MeasuredTime | None]] = {}
    without: list[str] = []
    for name, ask in estimates.items():
        try:
            estimate_of[name], measures[name] = ask()
        except (TrecexamError, ConversionError) as error:
            click.echo(cannot_go_on(name, error), err=True)
            without.append(name)
    if not estimate_of:
        raise TrecexamError("no grader of this track can run")
    estimate_of["sum"] = reduce(Estimated.plus, estimate_of.values())
    keys = list(dict.fromkeys(key for each in estimate_of.values() for key in each.columns()))
    rows: list[dict[str, Value]] = [
        {"grader": name, **dict.fromkeys(keys), **each.columns()} for name, each in estimate_of.items()
    ]
    table = Table(("grader", *keys), tuple(tuple(row.values()) for row in rows))
    if not as_json:
        show.table(table)
    if without:
        # Without a bank nobody knows its cells.
        click.echo(
            f"the sum is without grading by {', '.join(without)}, which comes on top; `watch --estimate` "
            "counts it once that can go on, as when its test bank is written",
            err=True,
        )
    for name, row in zip(estimate_of, rows, strict=True):
        row["minutes"] = None
        if name not in measures:
            continue
        if estimate_of[name].tokens_in is None:
            sample = _measured_time(measures[name], f"grading by {name}", "graded", "passage", cells=True)
            row["minutes"] = None if sample is None else round(sample.seconds / 60, 2)
    if as_json:
        minutes = [row["minutes"] for row in rows[:-1] if isinstance(row["minutes"], float)]
        rows[-1]["minutes"] = sum(minutes) if minutes else None
        rows[-1] |= {"without": ", ".join(without)} if without else {}
        show.table(table, as_json=True, json_value=rows)


def show_columns(
    columns: Mapping[str, Value], time: Callable[[], MeasuredTime | None], *, as_json: bool
) -> None:
    """Shows an estimate's columns. The time comes afterwards: measuring it takes seconds.

    Args:
        time: measures it and says so; in JSON `minutes` is it, and `measured` how many cells, or prompts, it
            was measured on; both are null where it is not known.
    """
    table = Table(tuple(columns), (tuple(columns.values()),))
    if not as_json:
        show.table(table)
    sample = time()
    if as_json:
        minutes = None if sample is None else round(sample.seconds / 60, 2)
        measured = {"minutes": minutes, "measured": None if sample is None else sample.cells}
        show.table(table, as_json=True, json_value=[{**columns, **measured}])


def _unmeasured() -> None:
    """Return no time: a sample of what counts tokens would cost."""


def _measured_time(
    measure: Callable[[], MeasuredTime | None],
    doing: str,
    done: str,
    what: str,
    *,
    cells: bool = False,
) -> MeasuredTime | None:
    """Says how long something would take, by a sample of it; where that cannot be known, why.

    Args:
        doing: what takes so long; `done` is what the sample was.
        what: a passage, a prompt ...; with `cells` the sample's are said, too.
    """
    try:
        sample = measure()
    except TrecexamError as error:
        # How many there are holds all the same.
        click.echo(f"no time can be measured here: {error}", err=True)
        return None
    if sample is not None:
        of = f"{plural(sample.cells, 'cell')} of " if cells else ""
        click.echo(
            f"{doing} would take about {bars.duration(sample.seconds)}, by a sample that was {done} here and "
            f"not stored: {sample.start:.1f} s until the first {what} was done, the model loaded, and "
            f"{sample.pace:.1f} s for {of}{plural(sample.passages, what)}",
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
