"""`trecexam status`."""

from __future__ import annotations

import json
from pathlib import Path

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import json_option, track_argument
from trecexam.tables.table import Table


@click.command(epilog="Example: trecexam status mytrack")
@track_argument
@json_option
def status(track: Path, as_json: bool) -> None:
    """What TRACK holds, how far grading is, and who is at work. Grades nothing."""
    with trecexam.open_track(track) as opened:
        values = opened.status()
    rows = tuple(
        (name, value if not isinstance(value, dict) else json.dumps(value)) for name, value in values.items()
    )
    show.table(Table(("name", "value"), rows), as_json=as_json, json_value=values)
