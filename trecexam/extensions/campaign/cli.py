"""`trecexam judge` (plan, agreement and judgment files of assessors) and `trecexam judge-next`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trecexam.cli import bars
from trecexam.cli.main import LazyGroup
from trecexam.cli.options import output_folder_option, track_argument
from trecexam.cli.reading import reading, say, writing

if TYPE_CHECKING:
    from trecexam.results.result import Result
    from trecexam.track import Track


@click.group(
    cls=LazyGroup,
    epilog="Example: trecexam judge plan mytrack --assessors ada,bob,eve --topics-each 10 --overlap 10%",
)
def judge() -> None:
    """Run a campaign of assessors: plan, agreement, and judgments as files."""


def _share(ctx: click.Context, param: click.Parameter, text: str) -> float:
    """Read a share: `10%` and `0.1` are 0.1."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise click.BadParameter(f"'{text}': a share, 10% or 0.1")
    return share


@click.command(
    epilog="Example: trecexam judge plan mytrack --assessors ada,bob,eve --topics-each 10 --overlap 10% "
    "--budget 500"
)
@track_argument
@click.option(
    "--assessors",
    metavar="NAMES",
    required=True,
    help="Divide the work among these people, separated by commas.",
)
@click.option(
    "--topics-each",
    type=click.IntRange(1),
    metavar="N",
    help="Give each at most N topics [default: no limit].",
)
@click.option(
    "--overlap",
    callback=_share,
    metavar="SHARE",
    default="0",
    help="Have a second assessor judge this share of the passages, drawn at random: 10%; 100% for all.",
)
@click.option(
    "--budget",
    type=click.IntRange(1),
    metavar="N",
    help="Plan N tasks in total, evenly over topics [default: the whole pool]. A task is a passage for one "
    "assessor; a passage for two assessors is two tasks.",
)
@click.option(
    "--passages",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Plan only the passages of this table with columns query_id and doc_id, in its order, as "
    "`judge-next -o` writes it [default: the whole pool, in the order of judge-next].",
)
@writing
def plan(
    track: Track,
    assessors: str,
    topics_each: int | None,
    overlap: float,
    budget: int | None,
    passages: Path | None,
) -> tuple[Result, int]:
    """Divide the passages of TRACK among assessors, each topic to one, with equal work for all.

    Writes TRACK/judging.tsv, one passage per line, which you may edit. Run it again to change the plan:
    finished tasks stay, and topics stay with who began them. Other topics are divided anew.
    """
    names = [name.strip() for name in assessors.split(",")]
    with bars.progress("ordering", "queries") as bar:
        planned = track.judging.plan(
            names,
            topics_each=topics_each,
            overlap=overlap,
            budget=budget,
            passages=passages,
            progress=bars.steps(bar),
        )
    return planned, 0


@click.command(epilog="Example: trecexam judge agreement mytrack")
@track_argument
@reading
def agreement(track: Track) -> Result:
    """Show how far the assessors of TRACK agree on passages that at least two judged, and where not.

    alpha is Krippendorff's, for ordered ratings of any number of people; kappa is Cohen's, of two;
    weighted_kappa has quadratic weights. Each person's last rating counts. A pipe gets the first table,
    --json the judgments on which people differ, too.
    """
    return track.judging.agreement()


@click.command(epilog="Example: trecexam judge export mytrack -o judged")
@track_argument
@output_folder_option("Write into this folder.")
def export(track: Track, output: Path) -> int:
    """Write what people judged of TRACK: qrels.txt, qrels-6.txt and judgments.tsv.

    qrels.txt has the labels that count, for trec_eval; qrels-6.txt adds the share of assessors who agree,
    and their names; judgments.tsv has every judgment, with time and note.

    Exit status: 0, or 1 if passages wait for a decision between assessors, or lines are not exported.
    """
    done = track.judging.export(output)
    say(done.notes)
    return 1 if done.rejected or any(done["undecided"]) else 0


@click.command(name="import", epilog="Example: trecexam judge import mytrack judged/judgments.tsv")
@track_argument
@click.argument("table", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
def import_(track: Track, table: Path) -> int:
    """Add the judgments in FILE, a table in the form of `judge export`, to TRACK.

    FILE needs the columns query_id, doc_id, assessor and rating; other columns are kept. Judgments that
    TRACK has already are skipped. Lines that TRACK could not use, as of an unknown query, are rejected.

    Exit status: 0, or 1 if a line was rejected.
    """
    done = track.judging.take_in(table)
    say(done.notes)
    return 1 if done.rejected else 0


@click.command(epilog="Example: trecexam judge-next mytrack -m nDCG@10 --top 50")
@track_argument
@click.option(
    "-m",
    "--measure",
    metavar="MEASURE",
    help="Rank runs by this measure on labels [default: the track's first].",
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
@reading
def judge_next(track: Track, measure: str | None, top: int, query_ids: tuple[str, ...]) -> Result:
    """List the unjudged passages that a person should judge next.

    With grades, passages whose judgment, in place of the label, would change the ranking most come first.
    expected_change: mean change of the difference of two runs, over all pairs. The probability of a rating is
    its share of the passage's ratings on the query's items.

    Other passages, and all without grades, follow by how many runs rank them high; queries take turns.
    """
    with bars.progress("trying", "queries") as trying:
        return track.judge_next(measure, query_ids=query_ids, top=top, progress=bars.steps(trying))
