"""`trecexam verify`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

import trecexam
from trecexam.cli.lazy import OpenGroup
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.group(cls=OpenGroup, epilog="Example: trecexam verify missing mytrack --min-relevant 2")
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
