"""`trecexam learn`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trecexam.cli.options import track_argument
from trecexam.cli.reading import writing
from trecexam.results.text import LOST, Note

if TYPE_CHECKING:
    from trecexam.results.result import Result
    from trecexam.track import Track


@click.command(epilog="Example: trecexam learn mytrack; then trecexam leaderboard mytrack --labels learned")
@track_argument
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="TRACK",
    help="Learn from the judgments of this other track, too [default: none].",
)
@writing
def learn(track: Track, source: Path | None) -> tuple[Result, int]:
    """Learn from TRACK's judgments which labels its unjudged passages would get.

    Writes out/learned.tsv (per pooled passage: expected judgment, standard deviation, label, judged or not),
    out/learned.qrels (the official judgments, unchanged, and labels for the rest), learned-leaderboard.tsv
    and learned.json (how they were made). Changes no judgment of people; grades nothing.

    Shows a cross-validation: half of the judgments are hidden and predicted. The order of the runs is
    compared with counting unjudged passages as 0 and with leaving these out; the labels for `fill` with open
    holes and with the grader's labels. `trecexam fill` uses the best method.

    Needs the extras `learn` and `offline`. The first call encodes each passage: a few dozen per second on a
    CPU. `encoder` in [learn] of trecexam.toml names another model.
    """
    learned = track.learn.labels(source=source)
    written = track.learn.write(learned)
    receipts = [Note(f"written: {', '.join(map(str, written))}", LOST)] if written else []
    return learned.validation.with_notes(*learned.notes, *receipts), 0
