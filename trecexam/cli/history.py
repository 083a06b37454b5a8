"""`trecexam history`."""

from __future__ import annotations

from pathlib import Path

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import json_option, track_argument
from trecexam.features.history import tables as rendering


@click.command(epilog="Example: trecexam history mytrack  then  trecexam history mytrack 3 --labels")
@track_argument
@click.argument("entry", type=click.IntRange(min=1), required=False, metavar="[N]")
@click.option("--labels", is_flag=True, help="With N: every label that changed.")
@json_option
def history(track: Path, entry: int | None, labels: bool, as_json: bool) -> None:
    """Which runs of TRACK moved at each change of files, bank or settings, and because of which labels.

    Without N a line for each entry of out/history/, the latest last; with N the runs that moved, as in
    out/history/log.tsv. `moved` counts runs whose mean or rank changed, `up` and `down` those whose rank did.
    Runs with equal means share a rank.
    """
    if labels and entry is None:
        raise click.UsageError("--labels is about one entry: name its number")
    with trecexam.open_track(track) as opened:
        folder = opened.folder.out / "history"
        if entry is None:
            rows = opened.history()
            if not rows:
                click.echo(f"no history yet: `trecexam watch {track}` keeps it in {folder}", err=True)
            show.table(rendering.overview_table(rows), as_json=as_json)
            return
        shown = opened.history.entry(entry)
    if labels:
        show.table(rendering.label_table(shown.board.labels), as_json=as_json)
    elif as_json:
        # The file as it is: all there is to know of the entry.
        click.echo((folder / f"{entry:06}.json").read_text(), nl=False)
    else:
        show.table(rendering.log_table(rendering.log_rows(shown)))
