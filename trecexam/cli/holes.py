"""`trecexam holes`."""

from __future__ import annotations

from pathlib import Path

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import aligned_option, json_option, track_argument, wide_option
from trecexam.tables.fitted import Layout


@click.command(epilog="Example: trecexam holes mytrack --depth 10 --depth 20 --by run")
@track_argument
@click.option(
    "--depth",
    "depths",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="K",
    help="How many first ranks count; may be repeated, the first sorts [default: the track's, 20].",
)
@click.option(
    "--by",
    type=click.Choice(["query", "run"]),
    help="A row for each query, after one over all; or only that one [default: run on a terminal and with "
    "--table, query in a pipe and with --json].",
)
@click.option(
    "--qrels",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Official judgments in place of the track's.",
)
@wide_option
@aligned_option
@json_option
def holes(
    track: Path,
    depths: tuple[int, ...],
    by: str | None,
    qrels: Path | None,
    wide: bool,
    aligned: bool,
    as_json: bool,
) -> None:
    """Judgment holes of TRACK's runs: unjudged and ungraded passages in their first ranks.

    A row for each run and query of the bank, and one over all queries (`all`): passages retrieved in the
    first K ranks, how many of them have no official judgment, how many no grade, and ir_measures' Judged@K.
    Runs with most unjudged passages come first. A negative official label is a judgment.
    """
    people = show.for_people(as_json=as_json, aligned=aligned)
    by_run = (by or ("run" if people else "query")) == "run"
    with trecexam.open_track(track) as opened:
        report = opened.holes(depths or None, qrels=qrels)
    for line in report.summary_lines():
        click.echo(line, err=True)
    if people and by is None:
        click.echo("sums over all queries; --by query has each query's", err=True)
    show.table(
        report.table(by_run=by_run),
        as_json=as_json,
        json_value=report.as_json(by_run=by_run),
        layout=Layout(("run", "query_id", "depth"), without=("query_id",) if by_run else ()),
        wide=wide,
        aligned=aligned,
    )
