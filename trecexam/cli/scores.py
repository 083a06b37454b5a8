"""`trecexam leaderboard`, and what all commands that show scores say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import trecexam
from trecexam.chosen import chosen_grader
from trecexam.cli import show
from trecexam.cli.options import aligned_option, json_option, measure_option, track_argument, wide_option
from trecexam.errors import TrecexamError
from trecexam.tables.fitted import Layout

if TYPE_CHECKING:
    from trecexam.api import Track

#: What `Track.override_summary` gives where nobody rated anything.
NOBODY = {"cells": 0, "passages": 0, "who": []}
#: Those of `trecexam.features.leaderboard.differences`, behind which is numpy.
TESTS = ("t", "randomisation")
CORRECTIONS = ("holm", "bonferroni", "fdr_bh", "fdr_by", "none")
#: Columns that say what a row of the tables of scores is about, and how many measures a terminal shows.
KEYS = ("run", "group", "official_rank")
MEASURES = 3


@click.command(epilog="Example: trecexam leaderboard mytrack -m 'Cover(rel=4)@20' -m nDCG@10")
@track_argument
@measure_option
@click.option(
    "--with",
    "others",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    multiple=True,
    metavar="TRACK",
    help="Also the measures of this track on runs of the same names, and Kendall's tau; may be repeated.",
)
@click.option("--official", is_flag=True, help="On the official judgments instead of the grades.")
@click.option(
    "--compat",
    type=click.Choice(["workbench"]),
    help="Print what changes where answers are read as the workbench's released code does.",
)
@click.option(
    "--overall",
    is_flag=True,
    help="Also the row _overall_, Cover of the whole pool, and the official leaderboard's ranks.",
)
@click.option(
    "--learned",
    is_flag=True,
    help="Expected nDCG@10 and AP, where labels learned from the judgments stand for missing ones.",
)
@click.option(
    "--these-queries", is_flag=True, help="Of --learned: intervals hold the labels alone, queries are fixed."
)
@click.option("--groups", is_flag=True, help="Also letters: runs that share one do not differ significantly.")
@click.option(
    "--baseline", metavar="RUN", help="Also each run's difference from RUN, effect size and p value."
)
@click.option("--pairs", is_flag=True, help="Print the compared pairs of runs, a line a measure and pair.")
@click.option("--test", type=click.Choice(TESTS), help="Paired, over queries [default: t].")
@click.option(
    "--correction",
    type=click.Choice(CORRECTIONS),
    help="Of p values, over all comparisons by a measure [default: holm].",
)
@click.option("--alpha", type=float, help="Corrected p values below it are significant [default: 0.05].")
@click.option(
    "--permutations",
    type=click.IntRange(1),
    help="Of the randomisation test [default: 10,000, or 50 a comparison where that is more].",
)
@click.option("--seed", type=click.IntRange(0), help="Of its random numbers [default: 0].")
@wide_option
@aligned_option
@json_option
def leaderboard(
    track: Path,
    measures: tuple[str, ...],
    others: tuple[Path, ...],
    official: bool,
    compat: str | None,
    overall: bool,
    learned: bool,
    these_queries: bool,
    groups: bool,
    baseline: str | None,
    pairs: bool,
    wide: bool,
    aligned: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """Runs of TRACK, best first by the first measure, with standard errors.

    Uses the grades that are there; `trecexam watch` makes them. Means are over all queries of the bank (with
    --official: of the official judgments), as trec_eval -c.

    --overall: _overall_ is what all pooled passages reach together, whatever the measure's cutoff; only
    Cover and nCover have it. The last column is the official rank, where TRACK has an official leaderboard.

    --groups compares all pairs of runs by the first measure, --baseline each run with RUN by each measure, in
    the columns of PyTerrier's pt.Experiment(baseline=...): queries on which a run is better (+) or worse (-),
    p-value, reject, p-value corrected; before them the difference of the means and its effect size (Cohen's
    d_z). --pairs prints the comparisons in the shape of out/differences.tsv.

    --with: several graders of the same runs side by side, as nuggets of whole responses and relevance of what
    was retrieved (see `trecexam init --inputs-of`). The other track's measures are NAME:MEASURE, with its
    folder's name; they are those of its settings, and -m is about TRACK's own.

    --learned: scores are means over draws of what people would say of unjudged passages; .low and .high are
    95% intervals, which hold what is uncertain in the labels and the queries. AP is down to the pool's depth,
    Judged@10 the share of a run's first ten passages that people judged. Nothing is written.

    A terminal is shown the first three measures, or all that -m names, below each other where they have no
    room side by side.
    """
    tested = groups or pairs or baseline is not None
    how = {name: value for name, value in how.items() if value is not None}
    if learned:
        options = {
            "-m": measures,
            "--with": others,
            "--official": official,
            "--compat": compat,
            "--overall": overall,
            "--groups": groups,
            "--baseline": baseline,
            "--pairs": pairs,
            **{f"--{name}": True for name in how},
        }
        refused = [name for name, given in options.items() if given]
        if refused:
            raise click.UsageError(
                f"--learned has its own measures and intervals: it goes without {refused[0]}"
            )
        _learned(track, these_queries=these_queries, wide=wide, aligned=aligned, as_json=as_json)
        return
    if these_queries:
        raise click.UsageError("--these-queries goes with --learned")
    if how and not tested:
        raise click.UsageError(f"--{next(iter(how))} goes with --groups, --baseline or --pairs")
    if tested and (overall or compat is not None):
        raise click.UsageError("--groups, --baseline and --pairs go with neither --overall nor --compat")
    if groups and (pairs or baseline is not None):
        raise click.UsageError("--groups goes with neither --baseline nor --pairs: ask for one")
    if overall and (official or compat is not None):
        raise click.UsageError("--overall is about the grades; it goes with neither --official nor --compat")
    if others and (tested or overall or official or compat is not None):
        raise click.UsageError("--with goes with -m alone: other leaderboards are one track's")
    if _is_joint(track) and not (official or overall or tested or compat):
        _joint(track, measures, wide=wide, aligned=aligned, as_json=as_json)
        return
    if compat is not None:
        if official:
            raise click.UsageError("--compat is about the grades; --official uses none")
        with trecexam.open_track(track) as opened, bad_measures():
            difference = opened.compare_readings(compat, measures or None)
        click.echo(
            f"{difference.differ:,} of {difference.cells:,} ratings differ when read as '{compat}'", err=True
        )
        show.table(difference.table, as_json=as_json, layout=Layout(), wide=wide, aligned=aligned)
        return
    # Not by `trecexam.open_track`: most of what that imports, a tenth of this command's time, is other
    # commands'. Behind these is numpy, which --help must not wait for.
    from trecexam.features.leaderboard import tables as results
    from trecexam.features.leaderboard.differences import differences
    from trecexam.features.leaderboard.joined import JoinedLeaderboards, names_of_tracks
    from trecexam.features.leaderboard.overall import overall_leaderboard
    from trecexam.line.evaluation import leaderboard as leaderboard_of
    from trecexam.line.loader import opened as opened_loader
    from trecexam.scores.measures import short_names

    with opened_loader(track) as loader, bad_measures():
        loaded = loader.load()
        whole = overall_leaderboard(loaded, measures or None) if overall else None
        board = whole.board if whole else leaderboard_of(loaded, measures or None, official=official)
        compared = None
        if tested:
            by = board.measures[:1] if groups else board.measures
            compared = differences(loaded, by, baseline=baseline, official=official, **how)
            click.echo(compared.words, err=True)
        files = {name: loaded.folder.shown(path) for name, path in loaded.run_files.items()}
        # Nothing of the grades, the grader's or people's, is in the official judgments.
        human_ratings = NOBODY if official else loaded.override_summary()
        if not official:
            show.human(loaded)
            show.missing(loaded.counts, loaded.folder.root)
    boards = {}
    for name, folder in names_of_tracks(others).items():
        with opened_loader(folder) as loader:
            boards[name] = leaderboard_of(loader.load())
    joined = JoinedLeaderboards(board, boards) if boards else None
    remarks = [f"{name}: {caution}" for name, other in boards.items() for caution in other.cautions]
    for line in (*board.cautions, *remarks, *(joined.lines() if joined else ())):
        click.echo(line, err=True)
    if not board.rows:
        click.echo(f"no runs yet: drop some into {loaded.folder.runs}", err=True)
    value = results.leaderboard_json(board, files, human_ratings) if as_json else None
    if compared and pairs:
        show.table(compared.table(), as_json=as_json, aligned=aligned)
        return
    added = compared or whole or joined
    short = short_names(board.measures)
    for name, other in boards.items():
        short |= {f"{name}:{own}": f"{name}:{known}" for own, known in short_names(other.measures).items()}
    plain = results.leaderboard_table(board)
    ranks = board.ranks
    show.table(
        compared.joined_to(plain) if compared else added.table() if added else plain,
        as_json=as_json,
        json_value=added.as_json(value) if added and value else value,
        layout=Layout(
            KEYS,
            most=None if measures or joined else MEASURES,
            split=bool(measures or joined),
            ranks=(None, *ranks) if whole else ranks,
            short=short,
        ),
        wide=wide,
        aligned=aligned,
        more="--wide shows all, -m MEASURE those that you name",
    )


def _is_joint(root: Path) -> bool:
    """Whether a track has several graders, and none is chosen."""
    # Behind it is pydantic, which --help must not wait for.
    from trecexam.track import TrackFolder

    return chosen_grader.get() is None and len(TrackFolder.open(root).config.graders) > 1


def _joint(root: Path, measures: tuple[str, ...], *, wide: bool, aligned: bool, as_json: bool) -> None:
    """The leaderboard of several graders: the columns of each, and with `wide` all that they have."""
    from trecexam.features.leaderboard import tables as results
    from trecexam.features.leaderboard.joint import all_measures, joint_json, joint_leaderboard
    from trecexam.features.leaderboard.joint import joint_short_names as short_names
    from trecexam.line.loaded_track import TrackLoaders
    from trecexam.track import TrackFolder

    with TrackLoaders(TrackFolder.open(root)) as loaders, bad_measures():
        loaded = loaders.load()
        board = joint_leaderboard(loaded, measures or (all_measures(loaded) if wide else None))
        value = joint_json(loaded, board) if as_json else None
        for each in loaded.assessments.values():
            show.human(each)
            show.missing(each.counts, each.folder.root)
    for line in board.cautions:
        click.echo(line, err=True)
    layout = Layout(KEYS, split=True, ranks=board.ranks, short=short_names(board.measures))
    show.table(
        results.leaderboard_table(board),
        as_json=as_json,
        json_value=value,
        layout=layout,
        wide=wide,
        aligned=aligned,
        more="--wide shows all, -m NAME:MEASURE those that you name",
    )


def _learned(track: Path, *, these_queries: bool, wide: bool, aligned: bool, as_json: bool) -> None:
    with trecexam.open_track(track) as opened, show.grading("encoding", "encoded", "passages") as encoding:
        board = opened.learned_leaderboard(these_queries=these_queries, progress=show.steps(encoding))
    for line in (board.summary(), *board.notes):
        click.echo(line, err=True)
    layout = Layout(KEYS, ranks=board.ranks)
    show.table(
        board.table(), as_json=as_json, json_value=board.as_json(), layout=layout, wide=wide, aligned=aligned
    )


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
@wide_option
@aligned_option
@json_option
def evaluate(
    qrels: Path,
    runs: tuple[Path, ...],
    measures: tuple[str, ...],
    per_query: bool,
    wide: bool,
    aligned: bool,
    as_json: bool,
) -> int:
    """Run files on a qrels file, as the `ir_measures` command does it, with Cover; no track is needed.

    Cover and nCover need qrels whose second column is the item, with every item of a query:
    out/rubric.subtopics.qrels of a track, with rel=1, or `trecexam export subtopics --min-rating N`. Where a
    passage stands several times for a query, measures that know no items take its best label. Means are over
    all queries of QRELS, as trec_eval -c.

    Nothing is graded here. `trecexam.evaluate` of Python is another thing: it grades runs by a test bank.
    """
    if not measures:
        raise click.UsageError("which measures? Name at least one with -m, as -m nDCG@10")
    from trecexam.features.leaderboard import tables as results
    from trecexam.features.leaderboard.files import evaluate_files

    done = evaluate_files(qrels, runs, measures)
    for line in (*done.rejected, *done.remarks):
        click.echo(line, err=True)
    if per_query:
        table, value = results.per_query_table(done.values, done.values.measures), None
        layout = Layout()
    else:
        table = results.leaderboard_table(done.board)
        value = results.leaderboard_json(done.board, done.files, NOBODY) if as_json else None
        layout = Layout(KEYS, split=True, ranks=done.board.ranks)
    show.table(table, as_json=as_json, json_value=value, layout=layout, wide=wide, aligned=aligned)
    return 1 if done.rejected else 0


def say_what_is_missing(track: Track) -> None:
    """Says what people rated, which cells have no grade and which passages no text."""
    show.human(track)
    show.missing(track.counts(), track.folder.root)


class bad_measures:  # noqa: N801 - reads as a block, not as a class
    """Turns a measure that cannot be computed into a one-line error."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if type(error) is ValueError:
            raise TrecexamError(str(error)) from None
