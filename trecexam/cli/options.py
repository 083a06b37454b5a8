"""Arguments that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

track_argument = click.argument("track", type=click.Path(path_type=Path, file_okay=False), metavar="TRACK")
json_option = click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
measure_option = click.option(
    "-m",
    "--measure",
    "measures",
    multiple=True,
    metavar="MEASURE",
    help="As ir_measures prints it: nDCG@10, P(rel=4)@20, Cover(rel=4)@20, alpha_nDCG@20. May be repeated.",
)
