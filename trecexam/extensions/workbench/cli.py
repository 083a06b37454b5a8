"""`trecexam export pool`."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import click

import trecexam
from trecexam.cli.export import emit, output_option
from trecexam.cli.options import track_argument


@click.command(epilog="Example: trecexam export pool mytrack -o graded.jsonl.gz")
@track_argument
@output_option
def pool(track: Path, output: Path | None) -> None:
    """Write TRACK's pool with its grades in the format of the Rubric workbench.

    One line per query, with texts, ranks in the runs, official judgments and the grader's own grades of
    every pooled passage. End FILE in .gz for the workbench; it reads no other. The `recorded` grader reads
    this file.
    """
    # The formats are half of --help's time.
    from trecexam.extensions.workbench.format import write_pool

    buffer = io.BytesIO()
    with trecexam.open_track(track) as opened:
        write_pool(opened.export.pool(), buffer)
    content = buffer.getvalue()
    if output is not None and output.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    emit(content, output)
