"""`trecexam ragval judge`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import estimate_option, json_option, key_env_option, track_argument
from trecexam.cli.reading import answer
from trecexam.cli.signals import exit_status
from trecexam.cli.working import show_estimate, used_now, working
from trecexam.tables.terminal import printable
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.extensions.ragval.judging import Judging

#: Of what was not taken, so many are named.
_NAMED = 20


@click.command("judge", epilog="Example: trecexam ragval judge mytrack --estimate")
@track_argument
@click.option(
    "--model",
    metavar="NAME|DIR",
    help="Judge with this model: what the server calls it, a folder or a hub id [default: as in [grader]].",
)
@click.option("--base-url", metavar="URL", help="The server that has it: http://localhost:8000/v1.")
@key_env_option
@estimate_option
@json_option
def judging(
    track: Path,
    model: str | None,
    base_url: str | None,
    key_env: str | None,
    estimate: bool,
    as_json: bool,
) -> int:
    """Have a judge score the answers in TRACK/runs for truthfulness and relevance, 1 to 5.

    A line of an answer file is {"question_id", "answer", "run_id"?, "n_input_tokens"?, "n_output_tokens"?};
    the bank has the questions with their knowledge blocks. The judge is the language model of [grader] in
    trecexam.toml, as settings there say; what it says is kept, so that none is judged twice. With
    `name = "ragval"` there, `trecexam watch` judges what is dropped. Writes TRACK/out/ragval/ and prints the
    systems as `trecexam ragval report` does.

    Exit status: 0, or 1 when something was rejected or not judged.
    """
    settings = _model(model, base_url, key_env)
    with trecexam.open_track(track) as opened:
        if estimate:
            estimate_of = partial(opened.ragval.estimate_judging, model=settings)
            return show_estimate(estimate_of, as_json=as_json, doing="judging", grades=True)
        with working("judging", "judged", "cells") as work:
            made = opened.ragval.judge(model=settings, progress=work.progress, stop=work.stop)
        folder = opened.folder.out / "ragval"
    _say(made)
    remarks = made.judged.remarks()
    if made.report is None:
        for line in (*remarks, "no answers to judge: drop files of them into the folder for runs"):
            click.echo(printable(line), err=True)
    else:
        what = f"{plural(made.graded, 'answer')} judged now" if made.graded else "nothing new to judge"
        notes = (*remarks, *made.report.notes, f"{what}, {len(made.judged.rows):,} in all: {folder}")
        answer(replace(made.report, notes=notes), "json" if as_json else None)
    whole = made.complete and made.report is not None and not made.rejected
    return exit_status(work.caught, 0 if whole else 1)


def _model(model: str | None, base_url: str | None, key_env: str | None) -> dict[str, str] | None:
    from pydantic import ValidationError

    from trecexam.config import GraderSection

    given = {"model": model, "base_url": base_url, "key_env": key_env}
    settings = {key: value for key, value in given.items() if value is not None}
    if settings and model is None:
        raise click.UsageError("--base-url and --key-env go with --model")
    if key_env is not None and base_url is None:
        raise click.UsageError("--key-env goes with --base-url")
    # A folder is meant from where the command runs.
    if model is not None and base_url is None and Path(model).is_dir():
        settings["model"] = str(Path(model).resolve())
    try:
        GraderSection.model_validate(settings)
    except ValidationError as error:
        first = error.errors()[0]
        option = "--" + str(first["loc"][0]).replace("_", "-")
        raise click.BadParameter(str(first["msg"]), param_hint=option) from None
    return settings or None


def _say(made: Judging) -> None:
    for row in made.rejected[:_NAMED]:
        click.echo(printable(f"not taken: {row}"), err=True)
    if len(made.rejected) > _NAMED:
        click.echo(f"not taken: {len(made.rejected) - _NAMED:,} more", err=True)
    if not made.complete:
        click.echo(f"ended early: {made.why or 'stopped'}", err=True)
    if made.usage is not None:
        used_now(made.usage)
