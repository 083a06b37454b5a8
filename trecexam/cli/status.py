"""`trecexam status`, `config` and `graders`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading, write
from trecexam.extension import provided
from trecexam.results.result import Result, Tables
from trecexam.results.table import Layout, Table

if TYPE_CHECKING:
    from trecexam.graders.prompts import Prompt
    from trecexam.track import Track


@click.command(epilog="Example: trecexam status mytrack")
@track_argument
@reading
def status(track: Track) -> Result:
    """Show what TRACK holds, how far grading is, and which processes are at work. Grades nothing.

    With several graders, prints one row per grader and a total. --grader NAME shows the details of one,
    --json of all.
    """
    return track.status()


@click.command(epilog="Example: trecexam config mytrack")
@click.argument("track", type=click.Path(path_type=Path, file_okay=False), metavar="[TRACK]", required=False)
def config(track: Path | None) -> None:
    """Print every setting of trecexam.toml as TOML, with description and value.

    Settings of TRACK are set; all others are comments with their defaults.
    """
    # Imports pydantic, which --help must not load.
    from trecexam.config import render_config
    from trecexam.folder import TrackFolder

    values = {} if track is None else TrackFolder.open(track).config.model_dump(exclude_unset=True)
    write(render_config(values))


@click.command(epilog="Example: trecexam graders")
@click.option("--prompts", is_flag=True, help="List the published prompts for language models instead.")
@reading
def graders(prompts: bool) -> Tables:
    """List the graders that can run here, and what to install for the others."""
    # Imports the settings of trecexam.toml and with these pydantic, for which --help must not wait.
    from trecexam.graders import available
    from trecexam.graders.prompts import published

    if prompts:
        prompt_rows = tuple(
            (p.name, _asked(p), _ratings(p), "choices, beam" if p.answers else "beam", p.source)
            for p in published().values()
        )
        columns = ("prompt", "asks about", "ratings", "decode", "source")
        return Tables({"prompts": Table(columns, prompt_rows, layout=Layout(("prompt",)))})
    grader_rows = [(name, factory.summary, factory.missing()) for name, factory in available().items()]
    remote = provided("elsewhere")
    grader_rows += [(remote.name, remote.summary, remote.missing())] if remote else []
    rows = tuple((name, "no" if missing else "yes", what, missing) for name, what, missing in grader_rows)
    header = ("grader", "available", "what", "missing")
    return Tables({"graders": Table(header, rows, layout=Layout(("grader",)))})


def _asked(prompt: Prompt) -> str:
    return prompt.asks if prompt.group == 1 else f"{prompt.group} {prompt.asks}s at once"


def _ratings(prompt: Prompt) -> str:
    """Return the scale of a prompt, or the ratings in the prompt."""
    ratings = sorted({rating for _, rating in prompt.answers})
    every = len(ratings) in {0, prompt.max_rating + 1}
    return f"0..{prompt.max_rating}" if every else ", ".join(map(str, ratings))
