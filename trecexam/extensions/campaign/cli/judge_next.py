"""`trecexam judge-next`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

import trecexam
from trecexam.cli import show
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
    help="Judge passages as a whole, or (passage, item) cells [default: what the measure is computed on].",
)
@click.option("-m", "--measure", metavar="MEASURE", help="Rank runs by this [default: the track's first].")
@click.option(
    "--by",
    type=click.Choice(["change", "swaps"]),
    default="change",
    show_default=True,
    help="Order by how far the runs' differences are expected to move, or by how many pairs swap.",
)
@click.option(
    "--top", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="Rows at the most."
)
@click.option("--query", "query_ids", multiple=True, metavar="QUERY_ID", help="Only these; may be repeated.")
@click.option("--include-judged", is_flag=True, help="Passages with official judgments too.")
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
    """Passages or cells of TRACK whose judgment by a person would change the ranking most, best first.

    Each rating that a person could give is tried on the leaderboard and weighed with its probability: the
    grader's own where it has one (`from` is "distribution"), else from how graders that graded here differ
    ("graders"), else from how the passage's ratings differ over the items ("items").

    expected_swaps: pairs of runs that would change places. expected_change: how far the means of two runs
    would move apart or together, on average over all pairs. p_change: the chance that the person says
    something else than stands there now.

    Of a grader of support: does the passage support the sentence? First what the grader has no label of, then
    what several runs share and what it is unsure of, a sentence of each response and query before the next.
    p_change is the chance that a person says another label, expected_change by how much of a citation.
    """
    with trecexam.open_track(track) as opened, show.grading("trying", "tried", "queries") as trying:
        try:
            found: Result = opened.judge_next(
                measure,
                level=level,
                by=by,
                query_ids=query_ids,
                include_judged=include_judged,
                top=top,
                progress=show.steps(trying),
            )
        except TrackError as error:
            if str(error) not in _lacking_banks(track):
                raise
            instead = f"without one `trecexam learned-next {track}` says what to judge"
            raise TrackError(f"{error.reason}; {instead}", path=error.path) from None
        return found


def _lacking_banks(root: Path) -> set[str]:
    """What is said of each grader of a track that has no bank."""
    from trecexam.line.track_graders import usable_folders
    from trecexam.track import TrackFolder

    said = set()
    for folder in usable_folders(TrackFolder.open(root)).values():
        try:
            optional = folder.bank(optional=True)
        except TrackError:
            # One that is named and missing is another matter.
            continue
        try:
            _ = optional or folder.bank()
        except TrackError as error:
            said.add(str(error))
    return said
