"""`trecexam verify`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from trecexam.cli.export import min_rating_option
from trecexam.cli.main import LazyGroup
from trecexam.cli.options import Command, track_argument
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.results.result import Result
    from trecexam.track import Track


@click.group(cls=LazyGroup, epilog="Example: trecexam verify missing mytrack --min-relevant 2")
def verify() -> None:
    """Inspect the grades behind the scores.

    Shows grades with answers, grids of passages and items, relevant passages that reach no item, and items
    that non-relevant passages reach. Uses existing grades.
    """


def only_option(name: str, metavar: str, noun: str) -> Callable[[Command], Command]:
    return click.option(
        *name.split(), f"{metavar.lower()}s", multiple=True, metavar=metavar,
        help=f"Show only this {noun}; may be repeated.",
    )  # fmt: skip


query_option = only_option("-q --query", "QUERY_ID", "query")
item_option = only_option("--item", "ITEM_ID", "item")
doc_option = only_option("--doc", "DOC_ID", "passage")
min_relevant_option = click.option(
    "--min-relevant",
    type=click.IntRange(min=1),
    metavar="N",
    help="Count a passage as relevant from this official judgment on [default: --min-rating if the scales "
    "are the same, else the track's, 1].",
)


def top_option(what: str) -> Callable[[Command], Command]:
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
def grading(track: Track, **options: Any) -> Result:
    """Show answers and ratings by item, best rated passages first.

    `rating` is the one that counts in the scores. `status` is ok, unparsed, refused or error; missing if
    there is no answer, no_text if the passage has no text to grade.
    """
    return track.verify.grading(**options)


@verify.command(epilog="Example: trecexam verify grid mytrack -q q1")
@track_argument
@query_option
@item_option
@doc_option
@min_rating_option
@top_option("passages of each query")
@reading
def grid(track: Track, **options: Any) -> Result:
    """Show a grid of ratings: passages (rows) by items (columns).

    Passages are sorted by official judgment, then by label. `reached` counts the items with --min-rating or
    better. In TSV, column item.N is the N-th item of the query, so queries share their columns.
    """
    return track.verify.grid(**options)


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
def missing(track: Track, **options: Any) -> Result:
    """List officially relevant passages that reach no item: the bank may lack one.

    Relevant passages without a rating, without text or outside the pool are counted separately. Needs
    official judgments.
    """
    return track.verify.missing(**options)


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
def spurious(track: Track, **options: Any) -> Result:
    """Rank items by how badly they tell relevant from non-relevant passages, worst first.

    phi, -1 to 1, correlates reaching the item with being officially relevant. Near 0 the item says nothing;
    below 0 it favours non-relevant passages. discrimination is the item's a from `exam fit`: how well it
    separates good from bad runs, whatever the judgments are. Needs official judgments.
    """
    return track.verify.spurious(**options)
