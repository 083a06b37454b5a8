"""`trecexam learn`."""

from __future__ import annotations

from pathlib import Path

import click

import trecexam
from trecexam.cli.options import track_argument
from trecexam.cli.reading import say

source_option = click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="TRACK",
    help="Learn from the judgments of this other track, too [default: none].",
)


@click.command(
    epilog="Example: trecexam learn mytrack  and, to see how good that is, trecexam cross-validate mytrack"
)
@track_argument
@source_option
def learn(track: Path, source: Path | None) -> None:
    """Learn from TRACK's judgments which labels its unjudged passages would get.

    Writes out/learned.tsv (per pooled passage: expected judgment, standard deviation, label, judged or not),
    out/learned.qrels (the official judgments, unchanged, and labels for the rest) and out/learned.json (how
    they were made). Changes no judgment of people; grades nothing.

    Needs the extras `learn` and `offline`. The first call encodes each passage: a few dozen per second on a
    CPU. `encoder` in [learn] of trecexam.toml names another model.
    """
    with trecexam.open_track(track) as opened:
        learned = opened.learn.labels(source=source)
        opened.learn.write(learned)
        out = opened.folder.out
    say(learned)
    click.echo(f"see {out / 'learned.tsv'}, learned.qrels", err=True)
