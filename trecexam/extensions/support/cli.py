"""`trecexam support`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import trecexam
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.extensions.support.support import By
    from trecexam.tables.result import Result


class _Others(click.Path):
    """A file, or people."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == "people" else super().convert(value, param, ctx)


@click.command(
    epilog="Example: trecexam support mytrack --by query; trecexam support mytrack --against people"
)
@track_argument
@click.option(
    "--against",
    type=_Others(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Compare with the labels of a file in the form of support.tsv: counts by label, and kappa. "
    "`people` compares the grader's labels with people's.",
)
@click.option(
    "--by",
    type=click.Choice(["run", "query", "citation"]),
    default="run",
    help="Print one row per run, query or citation [default: run]. Rows of citations have the labels.",
)
@reading
def support(track: Path, against: Path | str | None, by: By) -> Result:
    """Show how well the passages that TRACK's responses cite support the citing sentences.

    Uses the labels of a grader of support, a section [graders.support] of trecexam.toml; `trecexam watch`
    grades. Each sentence is graded with the first passage that it cites: full, partial or no support, as in
    TREC RAG 2024. Prints weighted precision (over citations), weighted recall (over all sentences) and F1 as
    means over queries, and the length and number of citations of responses. With --against, compares with
    the labels of a file, or of people.

    Exit status: 0, or 1 if a line or a run was rejected.
    """
    with trecexam.open_track(track) as opened:
        result: Result = opened.support(by) if against is None else opened.support.agreement(against)
    return result
