"""`trecexam judge-next`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

import trecexam
from trecexam.cli import bars
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading
from trecexam.errors import TrackError

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(
    epilog="Example: trecexam judge-next mytrack -m nDCG@10 --top 50; "
    "trecexam judge-next mytrack --grader support --top 50"
)
@track_argument
@click.option(
    "--level",
    type=click.Choice(["passage", "cell"]),
    help="Suggest passages as a whole, or (passage, item) cells [default: the measure's level].",
)
@click.option("-m", "--measure", metavar="MEASURE", help="Rank runs by this [default: the track's first].")
@click.option(
    "--by",
    type=click.Choice(["change", "swaps"]),
    default="change",
    show_default=True,
    help="Sort by how far the runs' differences are expected to change, or by how many pairs swap.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="Print at most N rows.",
)
@click.option(
    "--query", "query_ids", multiple=True, metavar="QUERY_ID", help="Show only this query; may be repeated."
)
@click.option("--include-judged", is_flag=True, help="Include passages that have official judgments.")
@reading
def judge_next(
    track: Path,
    level: Literal["passage", "cell"] | None,
    measure: str | None,
    by: Literal["change", "swaps"],
    top: int,
    query_ids: tuple[str, ...],
    include_judged: bool,
) -> Result:
    """List the passages or cells whose judgment by a person would change TRACK's ranking most.

    Each possible rating is tried on the leaderboard and weighted with its probability: the grader's own
    (`from` is "distribution"), else from the disagreement of several graders ("graders"), else from the
    passage's ratings on all items ("items"). expected_swaps: run pairs that would swap. expected_change:
    mean change of the difference of two runs, over all pairs. p_change: probability that the person's rating
    differs from the current one.

    With a grader of support, lists sentences with a cited passage: first those without a label, then those
    that several runs share or that are uncertain. expected_change is then in citations.
    """
    with trecexam.open_track(track) as opened, bars.grading("trying", "tried", "queries") as trying:
        try:
            result: Result = opened.judge_next(
                measure,
                level=level,
                by=by,
                query_ids=query_ids,
                include_judged=include_judged,
                top=top,
                progress=bars.steps(trying),
            )
        except TrackError as error:
            if str(error) not in _lacking_banks(track):
                raise
            instead = f"without a grader, `trecexam learned-next {track}` says what to judge"
            raise TrackError(f"{error.reason}; {instead}", path=error.path) from None
        return result


def _lacking_banks(root: Path) -> set[str]:
    """The error for a track whose graders have no bank."""
    from trecexam.line.track_graders import usable_folders
    from trecexam.track import TrackFolder

    messages = set()
    for folder in usable_folders(TrackFolder.open(root)).values():
        try:
            optional = folder.bank(optional=True)
        except TrackError:
            # A named but missing bank has its own error.
            continue
        try:
            _ = optional or folder.bank()
        except TrackError as error:
            messages.add(str(error))
    return messages
