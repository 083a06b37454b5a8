"""`trecexam bank check`."""

from __future__ import annotations

from pathlib import Path

import click

from trecexam.cli import show
from trecexam.cli.options import json_option
from trecexam.errors import TrecexamError
from trecexam.tables.table import Table
from trecexam.tables.text import plural


@click.command(epilog="Example: trecexam bank check bank.questions.jsonl --max-words 25")
@click.argument(
    "paths", type=click.Path(path_type=Path, exists=True), nargs=-1, required=True, metavar="FILE...|TRACK"
)
@click.option(
    "--max-words",
    type=click.IntRange(min=1),
    metavar="N",
    help="Words that an item may have [default: 30 for questions, 20 for nuggets].",
)
@click.option(
    "--edited", is_flag=True, help="List, too, the items that read otherwise than they were generated."
)
@json_option
def check(paths: tuple[Path, ...], max_words: int | None, edited: bool, as_json: bool) -> int:
    """What to look at again in the bank files FILE..., or in TRACK's bank.

    Lines that cannot be read; items that are empty, too long, a copy of the query, there twice (up to case
    and punctuation), or have remains of a model's answer around them. Of a TRACK also queries without items
    or text. Exit status 0: nothing was found; 1: something was.
    """
    from trecexam.extensions.banks.check import check_files, check_track
    from trecexam.extensions.banks.checks import BankFinding
    from trecexam.line.track_graders import open_folder

    folders = [path for path in paths if path.is_dir()]
    if folders and len(paths) > 1:
        raise TrecexamError("give one track, or files", path=folders[0])
    if folders:
        checked = check_track(open_folder(folders[0]), max_words=max_words)
    else:
        checked = check_files(paths, max_words)
    findings = (*checked.problems, *(checked.edited if edited else ()))
    show.table(Table(BankFinding._fields, findings), as_json=as_json)
    kept = f" ({checked.retired:,} more retired)" if checked.retired else ""
    what = plural(len(checked.problems), "problem") if checked.problems else "nothing to look at"
    click.echo(
        f"{plural(checked.items, 'item')}{kept} of {plural(checked.queries, 'query')}: {what}"
        + (f"; {plural(len(checked.edited), 'item')} edited since generated" if checked.edited else ""),
        err=True,
    )
    return 1 if checked.problems else 0
