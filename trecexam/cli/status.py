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

#: What a line of the table of several graders shows.
_COLUMNS = ("grader", "kind", "queries", "items", "runs", "cells", "ok", "missing", "requests", "cost")


@click.command(epilog="Example: trecexam status mytrack")
@track_argument
@json_option
def status(track: Path, as_json: bool) -> None:
    """What TRACK holds, how far grading is, and who is at work. Grades nothing.

    Of several graders there is a row for each, and a sum; --grader NAME shows all of one, --json of all.
    """
    with trecexam.open_track(track) as opened:
        values = opened.status()
    if "graders" in values:
        table = _of_graders(values)
        watched = values["watched_by"]
        if watched and not as_json:
            click.echo(f"note: watched by {watched}", err=True)
    else:
        table = Table(("name", "value"), tuple((name, _cell(value)) for name, value in values.items()))
    show.table(table, as_json=as_json, json_value=values)
    for note in [] if as_json else values["notes"]:
        click.echo(f"note: {note}", err=True)


def _of_graders(values: dict[str, Any]) -> Table:
    """A row a grader, and the sum of what can be summed up."""
    rows = [{**of_one, "who": name} for name, of_one in values["graders"].items()]
    rows.append({**values["total"], "who": "sum"})
    used = [key for key in _COLUMNS[1:] if any(row.get(key) is not None for row in rows)]
    return Table(("grader", *used), tuple((row["who"], *(row.get(key) for key in used)) for row in rows))


def _cell(value: Any) -> Any:
    """What stands in the table: of lines, how many there are."""
    return len(value) if isinstance(value, list) else json.dumps(value) if isinstance(value, dict) else value
