"""`trecexam graders`."""

from __future__ import annotations

import click

from trecexam.cli import show
from trecexam.cli.options import json_option
from trecexam.tables.table import Table


@click.command(epilog="Example: trecexam graders")
@click.option("--prompts", is_flag=True, help="The published prompts that language models are asked.")
@json_option
def graders(prompts: bool, as_json: bool) -> None:
    """What can grade here, and what the rest needs."""
    # Behind them are the settings of trecexam.toml and with these pydantic, for which --help must not wait.
    from trecexam.graders import available
    from trecexam.graders.cluster import missing_for_cluster
    from trecexam.graders.prompts import published

    if prompts:
        prompt_rows = tuple(
            (p.name, p.asks, f"0..{p.max_rating}", "choices, beam" if p.answers else "beam", p.source)
            for p in published().values()
        )
        show.table(
            Table(("prompt", "asks about", "ratings", "decode", "source"), prompt_rows), as_json=as_json
        )
        return
    known = [(name, factory.summary, factory.missing()) for name, factory in available().items()]
    known.append(
        ("ray", "any grader with a model, on a Ray cluster: `address` in [ray]", missing_for_cluster())
    )
    rows = tuple((name, "no" if missing else "yes", what, missing) for name, what, missing in known)
    show.table(Table(("grader", "available", "what", "missing"), rows), as_json=as_json)
