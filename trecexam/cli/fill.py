"""`trecexam fill`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trecexam.cli import bars
from trecexam.cli.options import map_option, track_argument
from trecexam.cli.reading import say, writing
from trecexam.extension import label_sources
from trecexam.results.text import first_notes

if TYPE_CHECKING:
    from trecexam.cli.options import Map
    from trecexam.results.result import Result
    from trecexam.track import Track


@click.command(epilog="Example: trecexam fill mytrack --qrels official.qrels -o merged.qrels")
@track_argument
@click.option(
    "--qrels",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="OFFICIAL",
    help="Fill these human judgments [default: the track's].",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="MERGED",
    help="Write the merged qrels to this file; those of an earlier `fill` are replaced, but no file in a "
    "track. Required without --dry-run.",
)
@map_option
@click.option(
    "--by",
    type=click.Choice(label_sources()),
    help="Take labels from the grader, or learn them from the judgments [default: learned after `trecexam "
    "learn`, unless its cross-validation found the grader better by more than chance; else grader].",
)
@click.option("--as-unjudged", is_flag=True, help="Give new lines the label -1: in the pool, not judged.")
@click.option("--dry-run", is_flag=True, help="Print the number of holes and cells; grade and write nothing.")
@writing
def fill(
    track: Track,
    qrels: Path | None,
    output: Path | None,
    mapped: Map | None,
    by: str | None,
    as_unjudged: bool,
    dry_run: bool,
) -> tuple[Result, int]:
    """Label the pooled passages that OFFICIAL does not judge, and merge both into MERGED.

    MERGED has the lines of OFFICIAL, unchanged, then one line per filled hole. Judged passages are neither
    graded nor relabelled. MERGED.sources.tsv names the source of each line: a human, or the grader, model
    and prompt with rating, confidence and rule; MERGED.json says in short whose labels MERGED holds. Prints
    the number of lines by label and source; with --dry-run, the holes of each query.

    If the cross-validation of `trecexam learn` found holes better than any label, --by is needed to write
    files. A track without a bank adds the judgments of its people alone, and leaves other holes.

    Exit status: 0, or 1 if holes remain (no text, no grade) or a run was rejected.
    """
    if output is None and not dry_run:
        raise click.UsageError("name the merged file with -o, or ask for --dry-run")
    if str(output) == "-":
        raise click.UsageError("- is not a file: MERGED and its sources belong together")
    rule, cuts = mapped or (None, {})
    holes = track.fill.find(qrels, rule=rule, cuts=cuts, as_unjudged=as_unjudged, by=by)
    if dry_run or output is None:
        return holes, 1 if holes.rejected else 0
    if holes.missing:
        # Print first: another rule must be chosen before hours of grading.
        say(first_notes(holes.notes, "--dry-run --json"))
    try:
        with bars.progress("filling") as progress:
            filled = track.fill(holes, output=output, progress=progress)
    except KeyboardInterrupt:
        click.echo(
            "stopped: nothing was written; grades so far are stored. Run it again to continue", err=True
        )
        raise
    return filled, 0 if filled.complete else 1
