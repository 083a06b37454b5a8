"""`trecexam ragval report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trecexam.cli.reading import reading
from trecexam.extensions import ragval

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam ragval report closed-book.jsonl rag.jsonl oracle.jsonl")
@click.argument(
    "paths",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    nargs=-1,
    required=True,
    metavar="FILE...",
)
@reading
def report(paths: tuple[Path, ...]) -> Result:
    """Report systems by their judged answers in FILE..., JSON Lines (plain or gzip), best sum first.

    A line has truthfulness and relevance, 1 to 5, question_id (or the question's text), and optionally
    run_id, n_input_tokens, n_output_tokens, retrieved. Without run_id, the file name names the system.
    Answers without scores count as unparsed; means and intervals leave them out, tokens do not.

    --json also has intervals (95%, Student's t), paired t tests (Holm), and places between the bounds: the
    runs closed-book and oracle.

    Exit status: 0; 1 if a line has an error; 2 if no file can be read.
    """
    return ragval.ragval_report(*paths)
