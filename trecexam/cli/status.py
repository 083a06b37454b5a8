"""`trecexam status`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
    rows = tuple((name, _cell(value)) for name, value in values.items())
    show.table(Table(("name", "value"), rows), as_json=as_json, json_value=values)
    for note in [] if as_json else values["notes"]:
        click.echo(f"note: {note}", err=True)


def _cell(value: Any) -> Any:
    """What stands in the table: of lines, how many there are."""
    return len(value) if isinstance(value, list) else json.dumps(value) if isinstance(value, dict) else value
