"""`trecexam support`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import aligned_option, json_option, track_argument, wide_option
from trecexam.cli.signals import exit_status, signals
from trecexam.cli.working import show_estimate, used_now
from trecexam.tables.table import Layout
from trecexam.tables.terminal import printable
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.features.support.support import SupportReport

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
#: Of the lines that were not taken, so many are named.
_NAMED = 20


class _Others(click.Path):
    """A file, or people."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == "people" else super().convert(value, param, ctx)


@click.command(epilog="Example: trecexam support mytrack --citations all --truncate 400 -o support")
@track_argument
@click.option(
    "--citations",
    type=click.Choice(["first", "all"]),
    help="Cited passages that are looked at, of each sentence [default: as in [support], else first].",
)
@click.option(
    "--truncate",
    type=click.IntRange(min=1),
    metavar="WORDS",
    help="Words of a response that count; TREC RAG takes 400 [default: as in [track], else all].",
)
@click.option("--labels", type=_FILE, metavar="FILE", help="Labels as in support.tsv in place of a grader's.")
@click.option(
    "--against",
    type=_Others(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Others, to compare with: counts by label, and kappa. Or `people`: the grader's with those of "
    "overrides.tsv.",
)
@click.option(
    "--by", type=click.Choice(["run", "query"]), default="run", help="A row for each [default: run]."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Gets support.tsv and support_runs.tsv [default: TRACK/out, where trecexam.toml has [support]].",
)
@click.option(
    "--estimate",
    is_flag=True,
    help="How many citations, tokens, how much money; or how long, by a small sample. Asks no server.",
)
@wide_option
@aligned_option
@json_option
def support(
    track: Path,
    citations: Any,
    truncate: int | None,
    labels: Path | None,
    against: Path | str | None,
    by: str | None,
    output: Path | None,
    estimate: bool,
    wide: bool,
    aligned: bool,
    as_json: bool,
) -> int:
    """Do the passages that TRACK's responses cite support the sentences that cite them?

    Each sentence of a response in TRACK/runs is graded with the first passage that it cites: full support,
    partial support or none, as in TREC RAG 2024. Passages come from the track's passages. Prints weighted
    precision (over citations), weighted recall (over all sentences) and their F1, each run's mean over
    queries; how long responses are, and how much they cite. Labels are kept, so that none is asked for
    twice. The grader is that of [support] in trecexam.toml; without that section, embeddings, which ask no
    model and see neither negations nor wrong numbers. With it, `trecexam watch` grades support, too.

    With --against the table is of labels by those of that file, or by people's.

    Exit status: 0, or 1 when a line was not taken or grading ended early.
    """
    people = show.for_people(as_json=as_json, aligned=aligned)
    with trecexam.open_track(track) as opened:
        settings = {"citations": citations, "truncate": truncate}
        if estimate:
            estimate_of = partial(opened.estimate_support, **settings)
            return show_estimate(estimate_of, "citations", as_json=as_json, doing="grading", grades=True)
        changed = any(each is not None for each in (citations, truncate, labels))
        if output is None and opened.folder.config.grades_support and not changed:
            output = opened.folder.out
        stopped: list[bool] = []
        with (
            show.grading("grading", "graded", "citations") as progress,
            signals(lambda: stopped.append(True)) as caught,
        ):
            done = opened.support(
                **settings,
                labels=labels,
                against=against,
                output=output,
                progress=progress,
                stop=lambda: bool(stopped),
            )
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
    return exit_status(caught, 0 if done.graded.complete and not done.rejected else 1)


def _say(done: SupportReport, output: Path | None) -> None:
    for row in done.rejected[:_NAMED]:
        click.echo(printable(f"not taken: {row}"), err=True)
    if len(done.rejected) > _NAMED:
        click.echo(f"not taken: {len(done.rejected) - _NAMED:,} more", err=True)
    if not done.graded.complete:
        click.echo(printable(f"ended early: {done.graded.why or 'stopped'}"), err=True)
    for note in done.track.notes:
        click.echo(printable(f"note: {note}"), err=True)
    for remark in done.remarks():
        click.echo(printable(remark), err=True)
    if done.usage is not None:
        used_now(done.usage)
    what = f"{plural(done.graded.cells, 'citation')} graded now"
    click.echo(
        f"{what}, {plural(len(done.cells.statements), 'sentence')}{f': {output}' if output else ''}", err=True
    )
