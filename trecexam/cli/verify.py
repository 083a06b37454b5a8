"""`trecexam verify`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.lazy import SuggestingGroup
from trecexam.cli.options import measure_option, track_argument
from trecexam.cli.reading import reading, writing
from trecexam.cli.scores import bad_measures
from trecexam.cli.signals import exit_status, signals
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.api import Track
    from trecexam.tables.result import Result


@click.group(cls=SuggestingGroup, epilog="Example: trecexam verify missing mytrack --min-relevant 2")
def verify() -> None:
    """Look at what the scores are made of.

    The grades with the answers behind them, grids of passages and items, relevant passages that no item
    reaches, and items that non-relevant passages reach. Uses the grades that are there.
    """


query_option = click.option(
    "-q", "--query", "query_ids", multiple=True, metavar="QUERY_ID", help="Only this query; may be repeated."
)
item_option = click.option(
    "--item", "item_ids", multiple=True, metavar="ITEM_ID", help="Only this item; may be repeated."
)
doc_option = click.option(
    "--doc", "doc_ids", multiple=True, metavar="DOC_ID", help="Only this passage; may be repeated."
)
min_rating_option = click.option(
    "--min-rating",
    type=click.IntRange(1, 5),
    metavar="N",
    help="From this rating on, a passage reaches an item [default: the track's, 4].",
)
min_relevant_option = click.option(
    "--min-relevant",
    type=click.IntRange(min=1),
    metavar="N",
    help="From this official judgment on, a passage is relevant [default: --min-rating where the scales are "
    "the same, else the track's, 1].",
)


def top_option(what: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    return click.option("--top", type=click.IntRange(min=1), metavar="N", help=f"Only the first N {what}.")


@verify.command(epilog="Example: trecexam verify grading mytrack -q q1 --top 5")
@track_argument
@query_option
@item_option
@doc_option
@top_option("passages of each item")
@reading
def grading(track: Path, top: int | None, **chosen: tuple[str, ...]) -> Result:
    """Answers and ratings, item by item, the best rated passages first.

    The rating is the one that counts in the scores. The status says what became of the answer: ok, unparsed,
    refused, error; missing where there is none, no_text where the passage has no text to grade.
    """
    with trecexam.open_track(track) as opened:
        return opened.verify.grading(**_all_or(chosen), top=top)


@verify.command(epilog="Example: trecexam verify grid mytrack -q q1")
@track_argument
@query_option
@item_option
@doc_option
@min_rating_option
@top_option("passages of each query")
@reading
def grid(track: Path, min_rating: int | None, top: int | None, **chosen: tuple[str, ...]) -> Result:
    """Ratings of passages (rows) on items (columns).

    Passages in the order of their official judgment, then of their label. `reached` counts the items with
    --min-rating or better. In TSV the column item.N is the query's N-th item, so queries share their columns.
    """
    with trecexam.open_track(track) as opened:
        return opened.verify.grid(**_all_or(chosen), min_rating=min_rating, top=top)


@verify.command(epilog="Example: trecexam verify missing mytrack --min-relevant 2 --min-rating 5")
@track_argument
@query_option
@min_rating_option
@min_relevant_option
@click.option("--per-query", is_flag=True, help="One row a query with its counts instead of one a passage.")
@top_option("passages of each query")
@reading
def missing(
    track: Path,
    min_rating: int | None,
    min_relevant: int | None,
    per_query: bool,
    top: int | None,
    **chosen: tuple[str, ...],
) -> Result:
    """Officially relevant passages that reach no item: does the bank lack one?

    Relevant passages that could reach none (no rating, no text, not in the pool) are counted apart. Needs
    official judgments.
    """
    with trecexam.open_track(track) as opened:
        return opened.verify.missing(
            **_all_or(chosen), min_rating=min_rating, min_relevant=min_relevant, per_query=per_query, top=top
        )


@verify.command(epilog="Example: trecexam verify spurious mytrack --min-relevant 2 --top 20")
@track_argument
@query_option
@item_option
@min_rating_option
@min_relevant_option
@click.option(
    "--sort",
    "order",
    type=click.Choice(["phi", "nonrelevant", "precision", "discrimination"]),
    default="phi",
    show_default=True,
    help="Worst first by phi, by non-relevant passages that reach it, by precision, or by how badly it tells "
    "runs apart.",
)
@top_option("items")
@reading
def spurious(
    track: Path,
    min_rating: int | None,
    min_relevant: int | None,
    order: Literal["phi", "nonrelevant", "precision", "discrimination"],
    top: int | None,
    **chosen: tuple[str, ...],
) -> Result:
    """Items by how badly they tell relevant from non-relevant passages.

    phi is the correlation of reaching the item with being officially relevant, -1 to 1: near 0 the item says
    nothing, below 0 it speaks for non-relevant passages. discrimination is the item's a of `exam fit`: how
    well it tells able runs from others, whatever the judgments say. Needs official judgments.
    """
    with trecexam.open_track(track) as opened:
        return opened.verify.spurious(
            **_all_or(chosen), min_rating=min_rating, min_relevant=min_relevant, order=order, top=top
        )


def _all_or(chosen: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """The ids asked for; None where none are, for all."""
    return {name: ids or None for name, ids in chosen.items()}


@verify.command(epilog="Example: trecexam verify readings mytrack -m 'P(rel=4)@20'")
@track_argument
@measure_option
@reading
def readings(track: Path, measures: tuple[str, ...]) -> Result:
    """What changes where answers are read as the Rubric workbench's released code reads them.

    A row for each run and measure; no model runs. `compat = "workbench"` in [grader] makes this reading the
    track's own.
    """
    with trecexam.open_track(track) as opened, bad_measures():
        return opened.verify.readings(measures=measures or None)


@verify.command(epilog="Example: trecexam verify reproducible mytrack --sample 200")
@track_argument
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar="N",
    help="How many graded cells, drawn by a hash: the same ones every time.",
)
@click.option("--yes", is_flag=True, help="Ask a grader that costs; without it, a terminal is asked first.")
@writing
def reproducible(track: Path, sample: int, yes: bool) -> tuple[Result, int]:
    """Does a cell get the same answer again, whatever is graded with it?

    Grades a sample of the graded cells with the track's grader, each alone and all of them in company, and
    compares: how many answers, ratings and probabilities differ in the last bit, the largest difference of a
    probability, and the share of cells with any difference. Nothing is stored. A server is asked twice about
    each cell, which is counted nowhere.

    Exit status: 0, or 1 when an answer differs or is lacking.
    """
    stopped: list[bool] = []
    with trecexam.open_track(track) as opened:
        _agree_to_cost(opened, sample, yes=yes)
        with (
            show.grading(done="graded again", what="cells") as progress,
            signals(lambda: stopped.append(True)) as caught,
        ):
            done = opened.verify.reproducible(sample=sample, progress=progress, stop=lambda: bool(stopped))
    return done, exit_status(caught, 0 if done.same else 1)


def _agree_to_cost(track: Track, sample: int, *, yes: bool) -> None:
    """Says what asking a grader that costs takes; goes on where somebody agrees."""
    estimated = track.verify.estimate_reproducible(sample=sample)
    if estimated.tokens_in is None:
        return
    calls = estimated.cells if estimated.calls is None else estimated.calls
    cost = "" if estimated.cost is None else f", cost {estimated.cost:.4g}"
    click.echo(
        f"this asks a server about {plural(calls, 'prompt')}: some {estimated.tokens_in:,} tokens in, "
        f"{estimated.tokens_out:,} out{cost}",
        err=True,
    )
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("say --yes to have them asked")
    if not yes:
        click.confirm("Ask?", abort=True, err=True)
