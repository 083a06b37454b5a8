"""`trecexam fill`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import map_option, track_argument
from trecexam.line.sources import sources_beside
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.cli.options import Map
    from trecexam.features.fill.filled import Filled, HolesToFill


@click.command(epilog="Example: trecexam fill mytrack --qrels official.qrels -o merged.qrels")
@track_argument
@click.option(
    "--qrels",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="OFFICIAL",
    help="The human judgments [default: the track's].",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="MERGED",
    help="The merged qrels; replaced as a whole. Needed unless --dry-run.",
)
@map_option
@click.option(
    "--by",
    type=click.Choice(["grader", "learned"]),
    help="Who gives the labels: the grader, or what the judgments teach [default: learned where "
    "`cross-validate` found it the best, else grader].",
)
@click.option("--as-unjudged", is_flag=True, help="Give the new lines the label -1: in the pool, not judged.")
@click.option(
    "--dry-run", is_flag=True, help="Say how many holes and cells there are; grade and write nothing."
)
def fill(
    track: Path,
    qrels: Path | None,
    output: Path | None,
    mapped: Map | None,
    by: str | None,
    as_unjudged: bool,
    dry_run: bool,
) -> int:
    """Fill the judgment holes of OFFICIAL: label the pooled passages that it lacks, and merge.

    MERGED has the lines of OFFICIAL as they are, in their order, and after them a line for each hole that has
    grades, or that labels can be learned for. No human label is changed, and no judged passage is graded.
    MERGED.sources.tsv says of each line who said it: a human, or which grader, model and prompt, with which
    rating and confidence, by which rule.

    Exit status: 0, or 1 when holes remain (no text, no grade) or a run was not taken.
    """
    if output is None and not dry_run:
        raise click.UsageError("name the merged file with -o, or ask for --dry-run")
    if str(output) == "-":
        raise click.UsageError("- is no file: MERGED and its sources belong together")
    rule, cuts = mapped or (None, {})
    with trecexam.open_track(track) as opened:
        holes = opened.fill.find(
            qrels,
            rule=rule,
            cuts=cuts,
            as_unjudged=as_unjudged,
            by=by,
        )
        _say_holes(holes)
        if dry_run or output is None:
            _say(*holes.rule_notes, f"labels, as of now: {holes.rule}")
            return 1 if holes.rejected else 0
        if holes.missing:
            # Who wants another rule should know before hours of grading go by.
            _say(*holes.rule_notes)
        sources = sources_beside(output)
        try:
            with show.grading(
                *(("encoding", "encoded", "passages") if holes.way == "learned" else ())
            ) as progress:
                filled = opened.fill(holes, output=output, progress=progress)
        except KeyboardInterrupt:
            _say("stopped: nothing is written, and what is graded is kept; start again to go on")
            raise
    _say_filled(filled, output, sources)
    return 0 if filled.complete else 1


def _say(*lines: str) -> None:
    for line in lines:
        click.echo(line, err=True)


def _say_holes(holes: HolesToFill) -> None:
    _say(*(f"not taken: {row}" for row in holes.rejected), *holes.notes)
    _say(
        f"{holes.official.source}: {plural(len(holes.official.rows), 'judgment')}; of the "
        f"{plural(holes.pooled, 'passage')} pooled to depth {holes.depth:,} {holes.judged:,} are judged; "
        f"{plural(holes.n_holes, 'hole')} to fill, {plural(holes.missing, 'cell')} to grade"
    )


def _say_filled(filled: Filled, output: Path, sources: Path) -> None:
    if filled.graded:
        _say(f"graded {plural(filled.graded, 'cell')}")
    noted_before = filled.found.rule_notes if filled.found.missing else ()
    _say(*(note for note in filled.notes if note not in noted_before), f"labels: {filled.rule}")
    if filled.partly:
        _say(f"{filled.partly:,} passages have no rating on some items, which count as not reached")
    if filled.no_text:
        _say(f"{filled.no_text:,} holes remain: the passages have no text that can be graded")
    if filled.no_grade:
        _say(f"{filled.no_grade:,} holes remain: the grader gave no rating")
    _say(
        f"{output}: {plural(len(filled.found.official.rows), 'human judgment')} as before, and "
        f"{plural(filled.filled, 'new line')}; who said what: {sources}"
    )
