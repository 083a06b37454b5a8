"""`trecexam evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trecexam.cli.options import required_measure_option
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
@required_measure_option
@click.option("--per-query", is_flag=True, help="Print one row per run, query and measure instead of means.")
@reading
def evaluate(qrels: Path, runs: tuple[Path, ...], measures: tuple[str, ...], per_query: bool) -> Result:
    """Evaluate run files with a qrels file, like the `ir_measures` command, with Cover; needs no track.

    Cover and nCover need qrels whose second column is the item, with every item of a query: a track's
    out/rubric.subtopics.qrels, with rel=1, or `trecexam export subtopics --min-rating N`. Other measures use
    a passage's best label. Means are over all queries of QRELS, as with trec_eval -c.

    Grades nothing. To grade runs with a test bank from Python, use `trecexam.evaluate`.
    """
    if not measures:
        raise click.UsageError("no measure is given: name at least one, for example -m nDCG@10")
    from trecexam.extensions.evaluate.files import evaluate_files

    return evaluate_files(qrels, runs, measures, per_query=per_query)
