"""`trecexam learn`."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

import trecexam
from trecexam.cli import show
from trecexam.cli.options import aligned_option, json_option, track_argument, wide_option
from trecexam.tables.table import Layout


@click.command(epilog="Example: trecexam learn mytrack  and, before, trecexam learn mytrack --cross-validate")
@track_argument
@click.option(
    "--cross-validate",
    is_flag=True,
    help="Say how good it is on hidden judgments; write nothing, but keep for `fill` which way is the best.",
)
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="TRACK",
    help="Learn from the judgments of this other track, too.",
)
@click.option(
    "--encoder",
    metavar="MODEL",
    help="A sentence-transformers model, a folder or hub id [default: the track's `encoder`].",
)
@click.option("--no-grades", is_flag=True, help="Leave the grader's ratings out of the features.")
@click.option(
    "--known",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    multiple=True,
    metavar="SHARE",
    help="Of --cross-validate: the share of judgments known, at random; may be repeated [default: 0.1, 0.5].",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="K",
    help="Of --cross-validate: the most retrieved judged passages known of each query; may be repeated "
    "[default: 5, 10].",
)
@click.option(
    "--teams",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Of --cross-validate: run<TAB>team lines; a team is left out as a whole.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Draws of a share, and of half of the teams.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the random numbers."
)
@wide_option
@aligned_option
@json_option
def learn(
    track: Path,
    cross_validate: bool,
    source: Path | None,
    encoder: str | None,
    no_grades: bool,
    known: tuple[float, ...],
    top: tuple[int, ...],
    teams: Path | None,
    repeats: int,
    seed: int,
    wide: bool,
    aligned: bool,
    as_json: bool,
) -> None:
    """Learn from TRACK's judgments what its unjudged passages would be judged.

    Writes out/learned.tsv (of each pooled passage the expected judgment, its standard deviation, a label,
    judged or not), out/learned.qrels (the official judgments as they are, and labels for the rest) and
    out/learned.json (by what and from what). People's judgments are never changed; nothing is graded.

    Needs the extras `learn` and `offline`. The first time each passage is encoded: a few dozen a second on a
    CPU.
    """
    own = ("known", "top", "teams", "repeats", "seed", "as_json", "aligned", "wide")
    source_of = click.get_current_context().get_parameter_source
    if not cross_validate and any(source_of(name) is ParameterSource.COMMANDLINE for name in own):
        raise click.UsageError(
            "--known, --top, --teams, --repeats, --seed, --json, --table and --wide are of --cross-validate"
        )
    with trecexam.open_track(track) as opened, show.grading("encoding", "encoded", "passages") as encoding:
        encoded = show.steps(encoding)
        if cross_validate:
            with show.grading("validating", "done", "fits") as fitting:
                validation = opened.learn.cross_validate(
                    known=known or None,
                    top=top or None,
                    teams=teams,
                    source=source,
                    encoder=encoder,
                    grades=not no_grades,
                    repeats=repeats,
                    seed=seed,
                    progress=encoded,
                    steps=show.steps(fitting),
                )
            show.table(
                validation.table(),
                as_json=as_json,
                json_value=validation.as_json(),
                layout=Layout(("split", "method"), ("kappa", "tau", "shift", "gain")),
                wide=wide,
                aligned=aligned,
            )
            for line in validation.summary_lines():
                click.echo(line, err=True)
            return
        learned = opened.learn.labels(source=source, encoder=encoder, grades=not no_grades, progress=encoded)
        opened.learn.write(learned)
        out = opened.folder.out
    for line in learned.notes:
        click.echo(line, err=True)
    judged = sum(row[-1] == "yes" for row in learned.table.rows)
    click.echo(
        f"learned from {learned.identity['judgments']['count']:,} judgments: {judged:,} passages are judged, "
        f"{len(learned.table.rows) - judged:,} have learned labels; see {out / 'learned.tsv'}, learned.qrels",
        err=True,
    )
