"""`trecexam autojudge`."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from trecexam.errors import TrecexamError

FILES = ("workflow.yml", "Dockerfile", "README.md")


def make_folder(folder: Path) -> list[Path]:
    """Write missing files and return their paths; a second call changes nothing.

    Raises:
        TrecexamError: a different file with one of the names exists, and nothing is written; or the folder
            cannot be written.
    """
    texts = {folder / name: text_of(name) for name in FILES}
    try:
        for path, text in texts.items():
            if path.exists() and path.read_text(encoding="utf-8", errors="replace") != text:
                raise TrecexamError(
                    "another file with this name exists and was not changed: move it away, or choose "
                    "another folder",
                    path=path,
                )
        folder.mkdir(parents=True, exist_ok=True)
        made = [path for path in texts if not path.exists()]
        for path in made:
            path.write_text(texts[path], encoding="utf-8")
    except OSError as error:
        raise TrecexamError(f"cannot be written: {error.strerror}", path=error.filename or folder) from None
    return made


def text_of(name: str) -> str:
    """Return the text of one of `FILES`."""
    return files(__package__).joinpath("texts", name).read_text(encoding="utf-8")


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
    click.echo(f"created {', '.join(str(path) for path in made)}", err=True)
    click.echo(f"next: {folder / 'README.md'} has the commands", err=True)
