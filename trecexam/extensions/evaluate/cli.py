"""`trecexam evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trecexam.cli.options import measure_option
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(
    epilog="Example: trecexam evaluate mytrack/out/rubric.subtopics.qrels my.run -m 'Cover(rel=1)@20'"
)
@click.argument("qrels", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="QRELS")
@click.argument(
    "runs",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    nargs=-1,
    required=True,
    metavar="RUN...",
)
@measure_option
@click.option("--per-query", is_flag=True, help="One row a run, query and measure, instead of means.")
@reading
def evaluate(qrels: Path, runs: tuple[Path, ...], measures: tuple[str, ...], per_query: bool) -> Result:
    """Run files on a qrels file, as the `ir_measures` command does it, with Cover; no track is needed.

    Cover and nCover need qrels whose second column is the item, with every item of a query:
    out/rubric.subtopics.qrels of a track, with rel=1, or `trecexam export subtopics --min-rating N`. Where a
    passage stands several times for a query, measures that know no items take its best label. Means are over
    all queries of QRELS, as trec_eval -c.

    Nothing is graded here. `trecexam.evaluate` of Python is another thing: it grades runs by a test bank.
    """
    if not measures:
        raise click.UsageError("which measures? Name at least one with -m, as -m nDCG@10")
    from trecexam.extensions.evaluate.files import evaluate_files

    return evaluate_files(qrels, runs, measures, per_query=per_query)
