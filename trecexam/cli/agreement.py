"""`trecexam agreement`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import json_option, track_argument
from trecexam.features.agreement.latex import agreement_latex
from trecexam.features.agreement.tables import agreement_crosstabs
from trecexam.files import atomic as files
from trecexam.tables.table import to_json, to_tsv

if TYPE_CHECKING:
    from trecexam.features.agreement.agreement import Agreements


@click.command(epilog="Example: trecexam agreement mytrack --min-answers 2 --min-relevant 2 --latex")
@track_argument
@click.option(
    "--min-rating",
    "min_ratings",
    type=click.IntRange(1, 5),
    multiple=True,
    metavar="N",
    help="From this rating on, a passage reaches an item; may be repeated [default: --min-relevant where "
    "the scales are the same, else the track's, 4].",
)
@click.option(
    "--min-answers",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="N",
    help="Items a passage must reach; may be repeated [default: the track's, 1].",
)
@click.option(
    "--min-relevant",
    type=click.IntRange(min=1),
    metavar="N",
    help="From this official label on, a passage is relevant [default: --min-rating where the "
    "scales are the same, else the track's, 1].",
)
@json_option
@click.option("--latex", "as_latex", is_flag=True, help="LaTeX tables, with booktabs.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Instead of standard output; replaced as a whole.",
)
def agreement(
    track: Path,
    min_ratings: tuple[int, ...],
    min_answers: tuple[int, ...],
    min_relevant: int | None,
    as_json: bool,
    as_latex: bool,
    output: Path | None,
) -> None:
    """Automatic labels of TRACK (rows) by people's judgments (columns), and Cohen's kappa.

    Graded, merged and binary tables over the passages that have both labels, with 95% intervals that take
    the passages of a query as dependent. A row's kappa is that of its label against the judgment that it
    is paired with.

    Where labels and judgments are on the same scale, both have the same threshold by default: the greater of
    the track's min_rating and min_relevant.

    Published tables for TREC DL 2019 are those of --min-answers 2 --min-relevant 2 on a track with
    `pool_judged = true` in [track] (`init --pool-judged`): they are over all judged passages, while by
    default only those in the runs' first ranks have a label.
    """
    if as_json and as_latex:
        raise click.UsageError("--json or --latex, not both")
    with trecexam.open_track(track) as opened:
        agreements = opened.agreement(min_ratings, min_answers, min_relevant)
        show.missing(opened.counts(), opened.folder.root)
    _say_what_counts(agreements)
    if as_latex:
        text = agreement_latex(agreements.found, f"{track.resolve().name}, {agreements.grader}")
    elif as_json:
        text = to_json(agreements.as_json())
    elif output is None and sys.stdout.isatty():
        text = agreement_crosstabs(agreements.found)
    else:
        text = to_tsv(agreements.table())
    if output is None:
        click.echo(text, nl=False)
    else:
        files.replace(output, text.encode())


def _say_what_counts(agreements: Agreements) -> None:
    click.echo(
        f"{agreements.n_both:,} passages of {agreements.n_queries:,} queries have a label and a judgment "
        f"({agreements.source}); {agreements.n_label_only:,} have only a label, "
        f"{agreements.n_judgment_only:,} only a judgment",
        err=True,
    )
    # Of several choices the axes, and mostly the pairing, are the same.
    notes = dict.fromkeys(line for notes in agreements.notes for line in notes)
    for line in (*notes, *agreements.warnings, *filter(None, [agreements.unpooled_note])):
        click.echo(line, err=True)
    if agreements.left_out["who"]:
        click.echo(
            f"left out: the ratings of {', '.join(agreements.left_out['who'])} in place of the grader's "
            f"({agreements.left_out['cells']:,} cells, {agreements.left_out['passages']:,} passages)",
            err=True,
        )
    for pair in agreements.found:
        t = pair.thresholds
        counts = pair.binary.counts
        for side, names, sums in (
            ("label", pair.binary.labels, counts.sum(axis=1)),
            ("judgment", pair.binary.judgments, counts.sum(axis=0)),
        ):
            given = [name for name, n in zip(names, sums.tolist(), strict=True) if n]
            if len(given) == 1:
                click.echo(
                    f"min_rating {t.min_rating}, min_answers {t.min_answers}, min_relevant {t.min_relevant}: "
                    f"every {side} is {given[0]}, so the binary kappa says nothing",
                    err=True,
                )
    if agreements.interval_note:
        click.echo(agreements.interval_note, err=True)
