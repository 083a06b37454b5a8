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
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.features.judge_next.judge_next import NextJudgments


@click.command(
    epilog="Example: trecexam judge-next mytrack -m nDCG@10 --top 50; "
    "trecexam judge-next mytrack --grader support --budget 50"
)
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
    help="Order by how far the runs' differences are expected to move, or by how many pairs swap  [default: "
    "change]",
)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Rows  [default: 20]")
@click.option("--query", "queries", multiple=True, metavar="QUERY_ID", help="Only these; may be repeated.")
@click.option("--include-judged", is_flag=True, help="Passages with official judgments too.")
@click.option("--budget", type=click.IntRange(min=1), metavar="N", help="Rows, of a grader of support.")
@json_option
def judge_next(
    track: Path,
    level: Literal["passage", "cell"] | None,
    measure: str | None,
    by: Literal["change", "swaps"] | None,
    top: int | None,
    queries: tuple[str, ...],
    include_judged: bool,
    budget: int | None,
    as_json: bool,
) -> None:
    """Passages or cells of TRACK whose judgment by a person would change the ranking most, best first.

    Each rating that a person could give is tried on the leaderboard and weighed with its probability: the
    grader's own where it has one (`from` is "distribution"), else from how graders that graded here differ
    ("graders"), else from how the passage's ratings differ over the items ("items").

    expected_swaps: pairs of runs that would change places. expected_change: how far the means of two runs
    would move apart or together, on average over all pairs. p_change: the chance that the person says
    something else than stands there now.

    Of a grader of support: does the passage support the sentence? First what the grader has no label of, then
    what several runs share and what it is unsure of, a sentence of each response and query before the next.
    p_change is the chance that a person says another label, expected_change by how much of a citation.
    """
    with trecexam.open_track(track) as opened:
        ranks = opened.grading.kind.ranks
    if not ranks:
        others = (level, measure, by, include_judged or None)
        if any(option is not None for option in others):
            raise click.UsageError("what this grader labels goes with --query, --budget and --top alone")
        _cited(track, queries, budget, top, as_json=as_json)
        return
    if budget is not None:
        raise click.UsageError("--budget is of a grader of support; `trecexam learned-next` plans with one")
    top = top or 20
    with trecexam.open_track(track) as opened, _Bar() as progress:
        judgments = opened.judge_next(
            measure,
            level=level,
            by=by or "change",
            query_ids=queries,
            include_judged=include_judged,
            progress=progress,
        )
        root = opened.folder.root
    _say(judgments, root, include_judged=include_judged, top=top)
    show.table(judgments.table(top), as_json=as_json, json_value=judgments.as_json(top) if as_json else None)


def _cited(
    track: Path, queries: tuple[str, ...], budget: int | None, top: int | None, *, as_json: bool
) -> None:
    with trecexam.open_track(track) as opened:
        plan = opened.judge_next.cited(query_ids=queries, budget=budget)
        root, grader = opened.folder.root, opened.folder.grader
    top = top or (20 if budget is None else None)
    shown = f"; the first {top}" if top is not None and len(plan.rows) > top else ""
    for line in (
        f"{plural(plan.judged, 'citation')} {'is' if plan.judged == 1 else 'are'} labelled by people, "
        f"{plan.candidates:,} {'is' if plan.candidates == 1 else 'are'} not, "
        f"{plan.ungraded:,} of these {'has' if plan.ungraded == 1 else 'have'} no label of the grader{shown}",
        *([f"{plan.no_text:,} whose passages have no text are left out"] if plan.no_text else []),
    ):
        click.echo(line, err=True)
    if plan.rows:
        query_id, doc_id, item_id = plan.rows[0].pair.key
        where = shlex.join([str(root), "--query", query_id, "--doc", doc_id, "--item", item_id])
        click.echo(
            f"to label: trecexam serve {shlex.quote(str(root))}, or "
            f"trecexam override {where}{f' --grader {grader}' if grader else ''} --rating full|partial|no "
            "--who NAME --why TEXT",
            err=True,
        )
    show.table(plan.table(top), as_json=as_json, json_value=plan.as_json(top) if as_json else None)


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
