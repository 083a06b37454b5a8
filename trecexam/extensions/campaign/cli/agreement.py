"""`trecexam judge agreement`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.extensions.campaign.agreement import AssessorAgreement
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam judge agreement mytrack --disagreements")
@track_argument
@click.option("--disagreements", is_flag=True, help="A row for each judgment on which people differ.")
@reading
def agreement(track: Path, disagreements: bool) -> Result:
    """How far the assessors of TRACK agree on what at least two of them judged.

    alpha is Krippendorff's, for ordered ratings of any number of people; kappa is Cohen's, of two, and
    weighted_kappa the same with quadratic weights. Each person's last rating counts here.
    """
    with trecexam.open_track(track) as opened:
        found: AssessorAgreement = opened.judging.agreement()
    return replace(found, by="disagreements") if disagreements else found
