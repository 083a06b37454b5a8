"""Packs: archives of a track's inputs, grades and environment, which reproduce out/."""

from __future__ import annotations

from pathlib import Path

import click

import trecexam
from trecexam.cli.options import output_option, whole_track_argument
from trecexam.extension import Command, Extension
from trecexam.results.terminal import printable


@click.command(epilog="Example: trecexam export pack mytrack -o paper.tar.gz")
@whole_track_argument
@output_option("Write this .tar.gz.", required=True)
def pack(track: Path, output: Path) -> None:
    """Pack TRACK's inputs, settings and grades into one archive.

    The archive has the raw answers of the graders and their environment, and the digests of out/. `trecexam
    init NEW --from FILE` makes the track again, and `trecexam watch NEW --once` makes out/ without a model.
    """
    with trecexam.open_track(track) as opened:
        click.echo(printable(opened.export.pack(output)), err=True)


EXTENSION = Extension(
    "pack",
    commands={"export pack": Command(f"{__name__}:pack")},
    services={"packs": f"{__name__}.packing:PACKS"},
)
