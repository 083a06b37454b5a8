"""`trecexam bank diff`."""

from __future__ import annotations

from pathlib import Path

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import json_option, measure_option, track_argument
from trecexam.cli.scores import bad_measures
from trecexam.tables.terminal import printable

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command(
    epilog="Example: trecexam bank diff /tmp/old.jsonl mytrack/bank.questions.jsonl mytrack --labels"
)
@click.argument("old", type=_FILE, metavar="OLD")
@click.argument("new", type=_FILE, metavar="NEW")
@track_argument
@measure_option
@click.option(
    "--all", "every", is_flag=True, help="Runs that keep their rank, passages that keep their label, too."
)
@click.option("--labels", is_flag=True, help="The passages whose labels differ, and not the runs.")
@click.option("--items", is_flag=True, help="The items that differ, and not the runs.")
@json_option
def diff(
    old: Path,
    new: Path,
    track: Path,
    measures: tuple[str, ...],
    every: bool,
    labels: bool,
    items: bool,
    as_json: bool,
) -> None:
    """What the bank file NEW changes against OLD: items, labels, and the ranks of TRACK's runs.

    Takes the grades that TRACK has; asks no model and writes nothing. Where OLD or NEW is a bank file of
    TRACK, both are looked at beside its other bank files. Prints the runs whose rank differs, for each
    measure; means are over all queries of the respective bank.
    """
    from trecexam.extensions.banks import diff_tables as rendering

    if labels and items:
        raise click.UsageError("--labels and --items are two tables: give one")
    with trecexam.open_track(track) as opened, bad_measures():
        difference = opened.bank.diff(old, new, measures or None)
        show.human(opened)
    for line in rendering.summary(difference):
        click.echo(printable(line), err=True)
    if labels:
        table = rendering.labels_table(difference, every=every)
    elif items:
        table = rendering.items_table(difference)
    else:
        table = rendering.run_table(difference, every=every)
    show.table(table, as_json=as_json, json_value=rendering.as_json(difference) if as_json else None)
