"""`trecexam exam`."""

from __future__ import annotations

import click

from trecexam.cli.main import LazyGroup


@click.group(cls=LazyGroup, epilog="Example: trecexam exam fit matrix.tsv -o fitted")
def exam() -> None:
    """Make multiple-choice exams, have systems take them, and fit item response models."""
