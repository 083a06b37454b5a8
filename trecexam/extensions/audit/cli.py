"""`trecexam audit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trecexam.cli.options import output_option
from trecexam.cli.reading import writing

if TYPE_CHECKING:
    from trecexam.results.result import Result

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command(
    epilog="Example: trecexam audit --qrels people.qrels --qrels judge.qrels --runs runs/ -o audit.html"
)
@click.option(
    "--qrels",
    type=_FILE,
    multiple=True,
    required=True,
    metavar="FILE",
    help="Use these judgments. Give a second file to compare it with the first.",
)
@click.option(
    "--runs",
    type=click.Path(path_type=Path, exists=True),
    multiple=True,
    required=True,
    metavar="FOLDER|FILE",
    help="Use these run files. May be repeated.",
)
@click.option("--teams", type=_FILE, metavar="FILE", help="Show bias by team; FILE has lines `run<TAB>team`.")
@click.option("--judge-run", type=_FILE, metavar="FILE", help="Show circularity with the judge's own run.")
@click.option(
    "-k",
    "--cutoff",
    type=click.IntRange(1, 20),
    default=10,
    show_default=True,
    metavar="K",
    help="Compare runs by nDCG@K.",
)
@output_option("Write the audit as one HTML page.")
@writing
def audit(
    qrels: tuple[Path, ...],
    runs: tuple[Path, ...],
    teams: Path | None,
    judge_run: Path | None,
    cutoff: int,
    output: Path | None,
) -> tuple[Result, int]:
    """Show which conclusions about runs survive, given one or two sets of judgments.

    Findings are sorted by importance: !!! a conclusion may be wrong, !! a paper must mention it, ! good to
    know. --json has all tables. Exit status: 0, or 1 if a run file was rejected.
    """
    from trecexam.extensions.audit import audit as auditing
    from trecexam.extensions.audit.reading import read_inputs

    result = auditing.audit(read_inputs(qrels, runs, teams, judge_run, cutoff))
    if output is not None:
        auditing.write_page(result, output)
        result = result.with_notes(f"{output}: written")
    return result, 1 if result.rejected else 0
