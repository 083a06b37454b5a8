"""`trecexam verify`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import click

from trecexam.cli.lazy import LazyGroup
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.tables.result import Result
    from trecexam.track import Track


@click.group(cls=LazyGroup, epilog="Example: trecexam verify missing mytrack --min-relevant 2")
def verify() -> None:
    """Inspect the grades behind the scores.

    Shows grades with answers, grids of passages and items, relevant passages that reach no item, and items
    that non-relevant passages reach. Uses existing grades.
    """


query_option = click.option(
    "-q",
    "--query",
    "query_ids",
    multiple=True,
    metavar="QUERY_ID",
    help="Show only this query; may be repeated.",
)
item_option = click.option(
    "--item", "item_ids", multiple=True, metavar="ITEM_ID", help="Show only this item; may be repeated."
)
doc_option = click.option(
    "--doc", "doc_ids", multiple=True, metavar="DOC_ID", help="Show only this passage; may be repeated."
)
min_rating_option = click.option(
    "--min-rating",
    type=click.IntRange(1, 5),
    metavar="N",
    help="Count a passage as reaching an item from this rating on [default: the track's, 4].",
)
min_relevant_option = click.option(
    "--min-relevant",
    type=click.IntRange(min=1),
    metavar="N",
    help="Count a passage as relevant from this official judgment on [default: --min-rating if the scales "
    "are the same, else the track's, 1].",
)


def top_option(what: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    return click.option(
        "--top", type=click.IntRange(min=1), metavar="N", help=f"Show only the first N {what} [default: all]."
    )


@verify.command(epilog="Example: trecexam verify grading mytrack -q q1 --top 5")
@track_argument
@query_option
@item_option
@doc_option
@top_option("passages of each item")
@reading
def grading(track: Track, top: int | None, **chosen: tuple[str, ...]) -> Result:
    """Show answers and ratings by item, best rated passages first.

    `rating` is the one that counts in the scores. `status` is ok, unparsed, refused or error; missing if
    there is no answer, no_text if the passage has no text to grade.
    """
    return track.verify.grading(**_all_or(chosen), top=top)


@verify.command(epilog="Example: trecexam verify grid mytrack -q q1")
@track_argument
@query_option
@item_option
@doc_option
@min_rating_option
@top_option("passages of each query")
@reading
def grid(track: Track, min_rating: int | None, top: int | None, **chosen: tuple[str, ...]) -> Result:
    """Show a grid of ratings: passages (rows) by items (columns).

    Passages are sorted by official judgment, then by label. `reached` counts the items with --min-rating or
    better. In TSV, column item.N is the N-th item of the query, so queries share their columns.
    """
    return track.verify.grid(**_all_or(chosen), min_rating=min_rating, top=top)


@verify.command(epilog="Example: trecexam verify missing mytrack --min-relevant 2 --min-rating 5")
@track_argument
@query_option
@min_rating_option
@min_relevant_option
@click.option(
    "--per-query", is_flag=True, help="Print one row per query with counts instead of one per passage."
)
@top_option("passages of each query")
@reading
def missing(
    track: Track,
    min_rating: int | None,
    min_relevant: int | None,
    per_query: bool,
    top: int | None,
    **chosen: tuple[str, ...],
) -> Result:
    """List officially relevant passages that reach no item: the bank may lack one.

    Relevant passages without a rating, without text or outside the pool are counted separately. Needs
    official judgments.
    """
    return track.verify.missing(
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
    help="Sort by phi, by the non-relevant passages that reach it, by precision, or by how badly it "
    "separates runs; worst first.",
)
@top_option("items")
@reading
def spurious(
    track: Track,
    min_rating: int | None,
    min_relevant: int | None,
    order: Literal["phi", "nonrelevant", "precision", "discrimination"],
    top: int | None,
    **chosen: tuple[str, ...],
) -> Result:
    """Rank items by how badly they tell relevant from non-relevant passages, worst first.

    phi, -1 to 1, correlates reaching the item with being officially relevant. Near 0 the item says nothing;
    below 0 it favours non-relevant passages. discrimination is the item's a from `exam fit`: how well it
    separates good from bad runs, whatever the judgments are. Needs official judgments.
    """
    return track.verify.spurious(
        **_all_or(chosen), min_rating=min_rating, min_relevant=min_relevant, order=order, top=top
    )


def _all_or(chosen: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """The ids asked for; None where none are, for all."""
    return {name: ids or None for name, ids in chosen.items()}
