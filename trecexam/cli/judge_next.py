"""`trecexam judge-next`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import json_option, track_argument

if TYPE_CHECKING:
    from trecexam.features.judge_next.judge_next import NextJudgments


@click.command(epilog="Example: trecexam judge-next mytrack -m nDCG@10 --top 50")
@track_argument
@click.option(
    "--level",
    type=click.Choice(["passage", "cell"]),
    help="Judge passages as a whole, or (passage, item) cells. Unset: what the measure is computed on.",
)
@click.option("-m", "--measure", metavar="MEASURE", help="What runs are ranked by. Unset: the track's first.")
@click.option(
    "--by",
    type=click.Choice(["change", "swaps"]),
    default="change",
    show_default=True,
    help="Order by how far the runs' differences are expected to move, or by how many pairs swap.",
)
@click.option("--top", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="Rows.")
@click.option("--query", "queries", multiple=True, metavar="QUERY_ID", help="Only these; may be repeated.")
@click.option("--include-judged", is_flag=True, help="Passages with official judgments too.")
@json_option
def judge_next(
    track: Path,
    level: Literal["passage", "cell"] | None,
    measure: str | None,
    by: Literal["change", "swaps"],
    top: int,
    queries: tuple[str, ...],
    include_judged: bool,
    as_json: bool,
) -> None:
    """Passages or cells of TRACK whose judgment by a person would change the ranking most, best first.

    Each rating that a person could give is tried on the leaderboard and weighed with its probability: the
    grader's own where it has one (`from` is "distribution"), else from how graders that graded here differ
    ("graders"), else from how the passage's ratings differ over the items ("items").

    expected_swaps: pairs of runs that would change places. expected_change: how far the means of two runs
    would move apart or together, on average over all pairs. p_change: the chance that the person says
    something else than stands there now.
    """
    with trecexam.open_track(track) as opened, _Bar() as progress:
        judgments = opened.judge_next(
            measure, level=level, by=by, query_ids=queries, include_judged=include_judged, progress=progress
        )
        root = opened.folder.root
    _say(judgments, root, include_judged=include_judged, top=top)
    show.table(judgments.table(top), as_json=as_json, json_value=judgments.as_json(top) if as_json else None)


def _say(judgments: NextJudgments, root: Path, *, include_judged: bool, top: int) -> None:
    unit, units = ("passage", "passages") if judgments.level == "passage" else ("cell", "cells")
    if judgments.judged:
        more = (
            ""
            if include_judged or judgments.level == "cell"
            else "; --include-judged has the official ones too"
        )
        click.echo(f"{judgments.judged:,} {units} that a person judged already are left out{more}", err=True)
    if judgments.ungraded:
        click.echo(
            f"{judgments.ungraded:,} {units} have no grade and are left out; `trecexam watch` grades",
            err=True,
        )
    if judgments.tied:
        click.echo(f"all {judgments.n_runs} runs are tied on {judgments.measure}", err=True)
    if not judgments.rows:
        if judgments.candidates:
            click.echo(
                f"no judgment of the {judgments.candidates:,} {units} would change the ranking: where "
                "opinions could differ they agree, or the runs are alike there",
                err=True,
            )
        else:
            click.echo(f"no {unit} is left to judge", err=True)
        return
    click.echo(
        f"{len(judgments.rows):,} of {judgments.candidates:,} {units} could change the ranking by "
        f"{judgments.measure}" + (f"; the first {top}:" if len(judgments.rows) > top else ":"),
        err=True,
    )
    row = judgments.rows[0]
    where = ["--query", row.suggestion.query_id, "--doc", row.suggestion.doc_id]
    where += ["--item", row.item.item_id] if row.item else []
    click.echo(
        f"to judge: trecexam override {shlex.join([str(root), *where])} --rating N --who NAME --why TEXT",
        err=True,
    )


class _Bar:
    """Draws how many queries are done, on a terminal."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __enter__(self) -> _Bar:
        return self

    def __call__(self, done: int, queries: int) -> None:
        if self._bar is None and sys.stderr.isatty():
            self._bar = click.progressbar(length=queries, label="trying judgments", file=sys.stderr)
            self._bar.__enter__()
        if self._bar is not None:
            self._bar.update(done - self._bar.pos)

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
