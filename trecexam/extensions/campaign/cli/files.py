"""`trecexam judge export` and `trecexam judge import`."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import click

import trecexam
from trecexam.cli.options import track_argument
from trecexam.tables.terminal import printable
from trecexam.tables.text import plural

#: So many topics are named with the passages that wait for a decision.
_TOPICS = 10


@click.command(epilog="Example: trecexam judge export mytrack -o judged")
@track_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="DIR",
    help="The folder to write into.",
)
def export(track: Path, output: Path) -> int:
    """Write what people judged of TRACK: qrels.txt, qrels-6.txt and judgments.tsv.

    qrels.txt has the labels that count, as trec_eval takes them; qrels-6.txt those with the share of
    assessors who agree, and their names; judgments.tsv all that was ever said, with time and note.

    Exit status: 0, or 1 when passages wait for a decision between assessors, or lines count nowhere.
    """
    with trecexam.open_track(track) as opened:
        done = opened.judging.export(output)
    for row in done.refused:
        click.echo(f"counts nowhere: {printable(str(row))}", err=True)
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
    """Take the judgments in FILE, a table as `judge export` writes it, into TRACK; known ones are not added.

    It needs the columns query_id, doc_id, assessor and rating; what else it has is kept, too.
    """
    with trecexam.open_track(track) as opened:
        done = opened.judging.take_in(table)
    for row in done.refused:
        click.echo(f"not taken: {printable(str(row))}", err=True)
    click.echo(f"{plural(done.n_new, 'new judgment')}, {done.n_known:,} known already", err=True)
    return 1 if done.refused else 0
