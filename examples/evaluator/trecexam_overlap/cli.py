"""`trecexam overlap`."""

import click

import trecexam
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading


@click.command(epilog="Example: trecexam overlap mytrack")
@track_argument
@reading
def overlap(track):
    """Items' words in the passages of TRACK's runs."""
    with trecexam.open_track(track) as opened:
        return opened.overlap.runs()
