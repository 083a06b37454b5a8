"""`trecexam bank diff`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import measure_option, track_argument
from trecexam.cli.reading import reading
from trecexam.cli.scores import bad_measures

if TYPE_CHECKING:
    from trecexam.extensions.banks.bank_difference import BankDiff
    from trecexam.tables.result import Result

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command(epilog="Example: trecexam bank diff /tmp/old.jsonl mytrack/bank.questions.jsonl mytrack")
@click.argument("old", type=_FILE, metavar="OLD")
@click.argument("new", type=_FILE, metavar="NEW")
@track_argument
@measure_option
@reading
def diff(old: Path, new: Path, track: Path, measures: tuple[str, ...]) -> Result:
    """Show what the bank file NEW changes against OLD: items, labels, and the ranks of TRACK's runs.

    Uses TRACK's existing grades; runs no model and writes nothing. If OLD or NEW is a bank file of TRACK,
    both are combined with its other bank files. Lists, for each measure, the runs whose rank differs, then
    the items and the labels that differ. Means are over all queries of each bank.
    """
    with trecexam.open_track(track) as opened, bad_measures():
        difference: BankDiff = opened.bank.diff(old, new, measures or None)
    return difference
