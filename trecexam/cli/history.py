"""`trecexam history`."""

from __future__ import annotations

from pathlib import Path

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import json_option, track_argument
from trecexam.errors import TrecexamError


@click.command(epilog="Example: trecexam history mytrack  then  trecexam history mytrack 3 --labels")
@track_argument
@click.argument("entry", type=click.IntRange(min=1), required=False, metavar="[N]")
@click.option("--last", type=click.IntRange(min=1), metavar="K", help="Only the K latest entries.")
@click.option("--moves", is_flag=True, help="A row for each run that moved, as in out/history/log.tsv.")
@click.option("--run", metavar="RUN", help="Only the rows of this run, as with --moves.")
@click.option("--labels", is_flag=True, help="With N: every label that changed.")
@json_option
def history(
    track: Path,
    entry: int | None,
    last: int | None,
    moves: bool,
    run: str | None,
    labels: bool,
    as_json: bool,
) -> None:
    """Which runs of TRACK moved at each change of files, bank or settings, and because of which labels.

    Without N a line for each entry of out/history/, the latest last. With N that entry in full; into a pipe
    its rows of the log. `moved` counts runs whose mean or rank changed, `up` and `down` those whose rank did.
    Runs with equal means share a rank.
    """
    # A third of --help's time.
    from trecexam.features.history import tables as rendering

    if entry is None:
        if labels:
            raise click.UsageError("--labels is about one entry: name its number")
        _log(track, last, run, moves=moves or run is not None, as_json=as_json)
        return
    if last is not None:
        raise click.UsageError("--last is for the list of entries, not for one")
    with trecexam.open_track(track) as opened:
        shown = opened.history_entry(entry)
    rows = [row for row in rendering.log_rows(shown) if run in (None, row.run)]
    if run is not None and run not in {row.run for row in shown.board.runs}:
        raise TrecexamError(f"entry {entry} has no run '{run}'", path=track)
    if labels:
        chosen = next((row.because for row in shown.board.runs if row.run == run), shown.board.labels)
        show.table(rendering.label_table(chosen), as_json=as_json)
    elif as_json:
        # The file as it is: all there is to know of the entry.
        click.echo((opened.folder.out / "history" / f"{entry:06}.json").read_text(), nl=False)
    elif moves or run is not None or not show.on_terminal():
        show.table(rendering.log_table(rows))
    else:
        show.lines(rendering.entry_text(shown).splitlines())


def _log(track: Path, last: int | None, run: str | None, *, moves: bool, as_json: bool) -> None:
    from trecexam.features.history import tables as rendering

    with trecexam.open_track(track) as opened:
        rows = opened.history()
        folder = opened.folder.out / "history"
    if not rows:
        click.echo(f"no history yet: `trecexam watch {track}` keeps it in {folder}", err=True)
    elif run is not None and run not in {row.run for row in rows}:
        raise TrecexamError(f"no entry names a run '{run}'", path=folder)
    if last is not None:
        kept = set(list(dict.fromkeys(row.entry for row in rows))[-last:])
        rows = tuple(row for row in rows if row.entry in kept)
    rows = tuple(row for row in rows if run in (None, row.run))
    show.table(rendering.log_table(rows) if moves else rendering.overview_table(rows), as_json=as_json)
