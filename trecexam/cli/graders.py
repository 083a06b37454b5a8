"""`trecexam graders`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trecexam.cli.reading import reading
from trecexam.tables.result import Tables
from trecexam.tables.table import Layout, Table

if TYPE_CHECKING:
    from trecexam.graders.prompts import Prompt


@click.command(epilog="Example: trecexam graders")
@click.option("--prompts", is_flag=True, help="The published prompts that language models are asked.")
@reading
def graders(prompts: bool) -> Tables:
    """What can grade here, and what the rest needs."""
    # Behind them are the settings of trecexam.toml and with these pydantic, for which --help must not wait.
    from trecexam.graders import available
    from trecexam.graders.elsewhere import elsewhere
    from trecexam.graders.prompts import published

    if prompts:
        prompt_rows = tuple(
            (p.name, _asked(p), _ratings(p), "choices, beam" if p.answers else "beam", p.source)
            for p in published().values()
        )
        columns = ("prompt", "asks about", "ratings", "decode", "source")
        return Tables({"prompts": Table(columns, prompt_rows, layout=Layout(("prompt",), most=3))})
    known = [(name, factory.summary, factory.missing()) for name, factory in available().items()]
    known += [(place.name, place.summary, place.missing()) for place in elsewhere()]
    rows = tuple((name, "no" if missing else "yes", what, missing) for name, what, missing in known)
    header = ("grader", "available", "what", "missing")
    return Tables({"graders": Table(header, rows, layout=Layout(("grader",)))})


def _asked(prompt: Prompt) -> str:
    return prompt.asks if prompt.group == 1 else f"{prompt.group} {prompt.asks}s at once"


def _ratings(prompt: Prompt) -> str:
    """The scale, or the ratings on it that there are."""
    ratings = sorted({rating for _, rating in prompt.answers})
    every = len(ratings) in {0, prompt.max_rating + 1}
    return f"0..{prompt.max_rating}" if every else ", ".join(map(str, ratings))
