"""`trecexam judge agreement`."""

from __future__ import annotations

from pathlib import Path

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import json_option, track_argument
from trecexam.tables.text import plural


@click.command(epilog="Example: trecexam judge agreement mytrack --disagreements")
@track_argument
@click.option("--disagreements", is_flag=True, help="A row for each judgment on which people differ.")
@json_option
def agreement(track: Path, disagreements: bool, as_json: bool) -> None:
    """How far the assessors of TRACK agree on what at least two of them judged.

    alpha is Krippendorff's, for ordered ratings of any number of people; kappa is Cohen's, of two, and
    weighted_kappa the same with quadratic weights. Each person's last rating counts here.
    """
    with trecexam.open_track(track) as opened:
        found = opened.judging.agreement()
    if found.rows:
        differ = plural(len(found.disagreements), "judgment")
        click.echo(f"people differ on {differ}; {found.interval_note}", err=True)
    else:
        click.echo("nothing is judged by two people; see --overlap of `trecexam judge plan`", err=True)
    table = found.disagreement_table() if disagreements else found.table()
    show.table(table, as_json=as_json, json_value=found.as_json() if as_json else None)
