"""`trecexam judge export` and `trecexam judge import`."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import click

import trecexam
from trecexam.cli.options import track_argument
from trecexam.tables.terminal import printable
from trecexam.tables.text import plural

#: The number of topics to list with undecided passages.
_TOPICS = 10


@click.command(epilog="Example: trecexam judge export mytrack -o judged")
@track_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="DIR",
    help="Write into this folder.",
)
def export(track: Path, output: Path) -> int:
    """Write what people judged of TRACK: qrels.txt, qrels-6.txt and judgments.tsv.

    qrels.txt has the labels that count, for trec_eval; qrels-6.txt adds the share of assessors who agree,
    and their names; judgments.tsv has every judgment, with time and note.

    Exit status: 0, or 1 if passages wait for a decision between assessors, or lines are not exported.
    """
    with trecexam.open_track(track) as opened:
        done = opened.judging.export(output)
    for row in done.refused:
        click.echo(f"not exported: {printable(str(row))}", err=True)
    click.echo(
        f"{plural(done.n_judged, 'judged passage')}, {plural(done.n_lines, 'judgment')}: "
        + ", ".join(map(str, done.paths)),
        err=True,
    )
    if done.undecided:
        waiting, more = sum(done.undecided.values()), max(0, len(done.undecided) - _TOPICS)
        by_topic = ", ".join(f"{topic}: {n}" for topic, n in islice(done.undecided.items(), _TOPICS))
        click.echo(
            printable(
                f"{plural(waiting, 'passage')} {'waits' if waiting == 1 else 'wait'} for a decision: "
                f"assessors differ on them (topic {by_topic}{f', and {more:,} more' if more else ''}). "
                f"`trecexam judge agreement {track}` lists them; decide on the page /campaign"
            ),
            err=True,
        )
    return 1 if done.refused or done.undecided else 0


@click.command(name="import", epilog="Example: trecexam judge import mytrack judged/judgments.tsv")
@track_argument
@click.argument("table", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
def import_(track: Path, table: Path) -> int:
    """Add the judgments in FILE, a table in the form of `judge export`, to TRACK.

    FILE needs the columns query_id, doc_id, assessor and rating; other columns are kept. Judgments that
    TRACK has already are skipped.
    """
    with trecexam.open_track(track) as opened:
        done = opened.judging.take_in(table)
    for row in done.refused:
        click.echo(f"rejected: {printable(str(row))}", err=True)
    click.echo(f"{plural(done.n_new, 'new judgment')}, {done.n_known:,} already in the track", err=True)
    return 1 if done.refused else 0
