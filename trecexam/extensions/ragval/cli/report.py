"""`trecexam ragval report`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trecexam.cli.reading import writing
from trecexam.extensions import ragval
from trecexam.tables.terminal import printable

if TYPE_CHECKING:
    from trecexam.tables.result import Result

#: Of the lines with errors, so many are named.
_NAMED = 20


@click.command(epilog="Example: trecexam ragval report closed-book.jsonl rag.jsonl oracle.jsonl -o report")
@click.argument(
    "paths",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    nargs=-1,
    required=True,
    metavar="FILE...",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write tables, report.json and plots into this folder.",
)
@click.option(
    "--sweep",
    metavar="FIELD",
    help="Compare systems along this swept parameter: a field of the lines, as chunk_size.",
)
@writing
def report(paths: tuple[Path, ...], output: Path | None, sweep: str | None) -> tuple[Result, int]:
    """Report systems by their judged answers in FILE..., JSON Lines (plain or gzip), best sum first.

    A line has truthfulness and relevance, 1 to 5, question_id (or the question's text), and optionally
    run_id, n_input_tokens, n_output_tokens, retrieved. Without run_id, the file name names the system.
    Answers without scores count as unparsed; means and intervals leave them out, tokens do not. The runs
    closed-book and oracle are the bounds. DIR gets report.tsv, intervals.tsv (95%, Student's t),
    histogram.tsv, significance.tsv (paired t tests, Holm), bounds.tsv, sweep.tsv, report.json and plots/.

    Exit status: 0; 1 if a line has an error; 2 if no file can be read.
    """
    if output is not None:
        # Imports numpy.
        from trecexam.extensions.ragval.reporting import ALWAYS, FILES
        from trecexam.line.protected import refuse_folder

        refuse_folder(output, paths, FILES, always=ALWAYS)
    comparison = ragval.ragval_report(*paths, sweep=sweep)
    why = comparison.write(output) if output else []
    for error in comparison.rejected[:_NAMED]:
        click.echo(f"trecexam: {printable(str(error))}", err=True)
    if comparison.rejected:
        where = f"{output / 'rejected.tsv'} has all" if output else "--json and -o DIR have all"
        more = f", {where}" if len(comparison.rejected) > _NAMED else ""
        click.echo(f"lines with errors: {len(comparison.rejected):,}{more}", err=True)
    return replace(comparison, notes=(*comparison.notes, *why)), 1 if comparison.rejected else 0
