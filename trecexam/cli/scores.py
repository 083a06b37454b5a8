"""`trecexam leaderboard` and `trecexam correlate`."""

from __future__ import annotations

from pathlib import Path

import click

from trecexam.api import Track, open_track
from trecexam.cli import show
from trecexam.cli.options import json_option, measure_option, track_argument
from trecexam.errors import TrecexamError
from trecexam.reports import results


@click.command(epilog="Example: trecexam leaderboard mytrack -m 'Cover(rel=4)@20' -m nDCG@10")
@track_argument
@measure_option
@click.option("--official", is_flag=True, help="On the official judgments instead of the grades.")
@click.option(
    "--compat",
    type=click.Choice(["workbench"]),
    help="Print what changes where answers are read as the workbench's released code does.",
)
@json_option
def leaderboard(
    track: Path, measures: tuple[str, ...], official: bool, compat: str | None, as_json: bool
) -> None:
    """Runs of TRACK, best first by the first measure, with standard errors.

    Uses the grades that are there; `trecexam watch` makes them. Means are over all queries of the bank (with
    --official: of the official judgments), as trec_eval -c.
    """
    if compat is not None:
        if official:
            raise click.UsageError("--compat is about the grades; --official uses none")
        with open_track(track) as opened, _bad_measures():
            difference = opened.compare_readings(compat, measures or None)
        click.echo(
            f"{difference.differ:,} of {difference.cells:,} ratings differ when read as '{compat}'", err=True
        )
        show.table(difference.table, as_json=as_json)
        return
    with open_track(track) as opened, _bad_measures():
        board = opened.leaderboard(measures or None, official=official)
        files = {name: opened.folder.shown(path) for name, path in opened.run_files().items()}
        said = opened.said()
        _say_what_is_missing(opened)
    if not board.rows:
        click.echo(f"no runs yet: drop some into {opened.folder.runs}", err=True)
    show.table(
        results.leaderboard_table(board),
        as_json=as_json,
        json_value=results.leaderboard_json(board, files, said) if as_json else None,
    )


@click.command(epilog="Example: trecexam correlate mytrack -m 'P(rel=4)@20' --official-measure nDCG@10")
@track_argument
@measure_option
@click.option(
    "--official-measure",
    "official_measures",
    multiple=True,
    metavar="MEASURE",
    help="On the official judgments; may be repeated.",
)
@click.option("--per-query", is_flag=True, help="One row a query instead of one over all.")
@json_option
def correlate(
    track: Path, measures: tuple[str, ...], official_measures: tuple[str, ...], per_query: bool, as_json: bool
) -> None:
    """Rank correlations of TRACK's leaderboard with the official one, for each pair of measures.

    Kendall's tau-b, Spearman's rho and tau_AP, with a 95% bootstrap interval of tau over queries. Over the
    runs and queries that both sides have.
    """
    with open_track(track) as opened, _bad_measures():
        comparison = opened.correlate(measures or None, official_measures or None, per_query=per_query)
        _say_what_is_missing(opened)
    if comparison is None:
        raise TrecexamError(
            "nothing to compare: it needs runs, and official judgments (qrels.txt) or an official "
            "leaderboard (official_leaderboard.json)",
            path=track,
        )
    show.table(comparison.table(), as_json=as_json, json_value=comparison.as_json())


def _say_what_is_missing(track: Track) -> None:
    counts = track.counts()
    show.human(track)
    if counts.missing:
        click.echo(
            f"{counts.missing:,} of {counts.cells:,} cells have no grade; "
            f"`trecexam watch {track.folder.root}` grades what the grader can",
            err=True,
        )
    if counts.no_text:
        click.echo(
            f"{counts.no_text:,} of {counts.passages:,} pooled passages have no text and count as not "
            "relevant",
            err=True,
        )


class _bad_measures:  # noqa: N801 - reads as a block, not as a class
    """Turns a measure that cannot be computed into a one-line error."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if type(error) is ValueError:
            raise TrecexamError(str(error)) from None
