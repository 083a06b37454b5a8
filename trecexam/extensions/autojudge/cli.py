"""`trecexam autojudge`."""

from __future__ import annotations

from pathlib import Path

import click

from trecexam.extensions.autojudge.folder import make_folder


@click.command(epilog="Example: trecexam autojudge myjudge")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
def autojudge(folder: Path) -> None:
    """Make the folder DIR: a judge that can be handed in to TREC AutoJudge.

    It has a workflow.yml with the variants `rubric`, `nuggets`, `umbrela`, `support`, `all` and `offline`
    (needs no language model), a Dockerfile, and a README with the two commands to build and run it.
    `settings` in workflow.yml are settings of trecexam.toml.
    """
    made = make_folder(folder)
    if not made:
        click.echo(f"{folder} is up to date; nothing to do", err=True)
        return
    click.echo(f"made {', '.join(str(path) for path in made)}", err=True)
    click.echo(f"next: {folder / 'README.md'} has the commands", err=True)
