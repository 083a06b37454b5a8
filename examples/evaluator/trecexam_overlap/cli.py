"""`trecexam overlap`."""

import click

from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading


@click.command(epilog="Example: trecexam overlap mytrack")
@track_argument
@reading
def overlap(track):
    """Items' words in the passages of TRACK's runs."""
    # Imports numpy, which --help must not load.
    from trecexam_overlap.feature import runs

    return runs(track)
