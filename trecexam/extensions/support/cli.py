"""`trecexam support`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import aligned_option, json_option, track_argument, wide_option
from trecexam.tables.table import Layout
from trecexam.tables.terminal import printable

if TYPE_CHECKING:
    from trecexam.extensions.support.support import SupportReport

#: Of the lines that were not taken, so many are named.
_NAMED = 20


class _Others(click.Path):
    """A file, or people."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == "people" else super().convert(value, param, ctx)


@click.command(
    epilog="Example: trecexam support mytrack --by query; trecexam support mytrack --against people"
)
@track_argument
@click.option(
    "--against",
    type=_Others(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Compare with the labels of a file as support.tsv: counts by label, and kappa. Or `people`: the "
    "grader's with those of people.",
)
@click.option(
    "--by", type=click.Choice(["run", "query"]), default="run", help="A row for each [default: run]."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write support.tsv and support_runs.tsv there, as `trecexam watch` writes them to out/.",
)
@wide_option
@aligned_option
@json_option
def support(
    track: Path,
    against: Path | str | None,
    by: str | None,
    output: Path | None,
    wide: bool,
    aligned: bool,
    as_json: bool,
) -> int:
    """Do the passages that TRACK's responses cite support the sentences that cite them?

    Shows what a grader of support says, a section [graders.support] of trecexam.toml; `trecexam watch`
    grades. Each sentence of a response is graded with the first passage that it cites: full support, partial
    support or none, as in TREC RAG 2024. Prints weighted precision (over citations), weighted recall (over
    all sentences) and their F1, each run's mean over queries; how long responses are, and how much they cite.

    With --against the table is of labels by those of that file, or by people's.

    Exit status: 0, or 1 when a line or a run was rejected.
    """
    people = show.for_people(as_json=as_json, aligned=aligned)
    with trecexam.open_track(track) as opened:
        done = opened.support(against=against, output=output)
        _say(done, output)
    if done.agreement is not None:
        for line in done.agreement.lines():
            click.echo(line, err=True)
        show.table(done.agreement.table, as_json=as_json)
    else:
        layout = Layout(("run", "query_id") if by == "query" else ("run",)) if people else None
        show.table(
            done.table(by_query=by == "query"), as_json=as_json, layout=layout, wide=wide, aligned=aligned
        )
    return 1 if done.rejected else 0


def _say(done: SupportReport, output: Path | None) -> None:
    for row in done.rejected[:_NAMED]:
        click.echo(printable(f"not taken: {row}"), err=True)
    if len(done.rejected) > _NAMED:
        click.echo(f"not taken: {len(done.rejected) - _NAMED:,} more", err=True)
    for note in (*done.track.notes, *done.remarks()):
        click.echo(printable(f"note: {note}"), err=True)
    if output is not None:
        click.echo(printable(f"written: {output}"), err=True)
