"""`trecexam bank check` and `diff`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trecexam.cli.options import grader_option, measure_option, open_chosen, track_argument
from trecexam.cli.reading import reading
from trecexam.cli.scores import bad_measures
from trecexam.errors import TrecexamError

if TYPE_CHECKING:
    from trecexam.results.result import Result
    from trecexam.track import Track

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command(epilog="Example: trecexam bank check bank.questions.jsonl")
@click.argument(
    "paths", type=click.Path(path_type=Path, exists=True), nargs=-1, required=True, metavar="FILE...|TRACK"
)
@grader_option
@reading
def check(paths: tuple[Path, ...], grader: str | None) -> Result:
    """Check the bank files FILE..., or TRACK's bank, and list what to look at again.

    Finds unreadable lines, and items that are empty, too long (30 words, nuggets 20), copies of the query,
    duplicates (up to case and punctuation), or wrapped in remains of a model's answer. With TRACK, also
    finds queries without items or text. Exit status: 0 if nothing was found, else 1.
    """
    from trecexam.extensions.banks.checks import check_files

    folders = [path for path in paths if path.is_dir()]
    if folders and len(paths) > 1:
        raise TrecexamError("give one track, or files", path=folders[0])
    if not folders:
        return check_files(paths)
    with open_chosen(folders[0], grader) as opened:
        return opened.bank.check()


@click.command(epilog="Example: trecexam bank diff /tmp/old.jsonl mytrack/bank.questions.jsonl mytrack")
@click.argument("old", type=_FILE, metavar="OLD")
@click.argument("new", type=_FILE, metavar="NEW")
@track_argument
@measure_option
@reading
def diff(old: Path, new: Path, track: Track, measures: tuple[str, ...]) -> Result:
    """Show what the bank file NEW changes against OLD: items, labels, and the ranks of TRACK's runs.

    Uses TRACK's existing grades; runs no model and writes nothing. If OLD or NEW is a bank file of TRACK,
    both are combined with its other bank files. Lists, for each measure, the runs whose rank differs, then
    the items and the labels that differ. Means are over all queries of each bank.
    """
    with bad_measures():
        return track.bank.diff(old, new, measures or None)
