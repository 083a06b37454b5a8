"""The leaderboard in out/ and in the report, and its values by query."""

from __future__ import annotations

import itertools

import numpy as np

from trecexam.errors import sentence
from trecexam.feature import Feature
from trecexam.features.leaderboard.board import own_leaderboard
from trecexam.features.leaderboard.differences import differences, own_differences
from trecexam.features.leaderboard.plot import leaderboard_plot, plot_of
from trecexam.grades.diagnostics import NO_RUNS, unread_answers
from trecexam.grades.evaluation import values_of_runs, why_no_scores
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.page.page import Page
from trecexam.results.result import Tables
from trecexam.results.table import Table, to_tsv
from trecexam.scores.leaderboard import Leaderboard

#: Maximum number of runs on the page.
_RUNS = 200


def _board(track: GradedTrack) -> Leaderboard:
    return own_leaderboard(track).with_notes(*unread_answers(track))


def _per_query(track: GradedTrack) -> bytes:
    """Return `run query_id measure value`, sorted by run, then query, then the measures' order."""
    values, header = values_of_runs(track), ("run", "query_id", "measure", "value")
    query_ids, parts = sorted(values.query_ids), [to_tsv(Table(header, ()))]
    # One run at a time: rows of all runs take five times the memory of the file.
    for run in sorted(values.runs):
        matrix = np.stack([values.matrix(name, (run,), query_ids)[0] for name in values.measures], axis=1)
        keys = itertools.product((run,), query_ids, values.measures)
        rows = tuple((*key, value) for key, value in zip(keys, matrix.ravel().tolist(), strict=True))
        parts.append(to_tsv(Table(header, rows))[len(parts[0]) :])
    return "".join(parts).encode()


def _groups(track: GradedTrack) -> Tables:
    return Tables({"groups": own_differences(track).tables["groups"]})


def _page(track: GradedTrack, page: Page) -> None:
    """Add the section "leaderboard"."""
    board = own_leaderboard(track)
    title, why = "Leaderboard", why_no_scores(track) if board.rows else NO_RUNS
    if why:
        page.add("leaderboard", Tables({}, board.notes), title=title, why=sentence(why))
        return
    means = f"all {board.n_queries:,} queries: one that a run skips counts 0"
    if board.average != "all":
        means = "the queries that each run answered, which flatters runs that skip some"
    lead = [f"Means over {means}. Below each mean is ± its standard error."]
    tables, files = dict(board.tables), ["leaderboard.tsv", "per_query.tsv"]
    if len(board.rows) > 1:
        compared = own_differences(track)
        tables["leaderboard"] = compared.joined_to(board.table)
        files.append("differences.tsv")
        lead.append(
            f"Runs that share a letter do not differ significantly by {board.measures[0]} "
            f"({compared.words}); differences.tsv has all pairs with p values and effect sizes."
        )
    named = track.config.report.baseline
    if named in track.runs:
        against = differences(track, board.measures[:1], baseline=named)
        tables["differences"] = against.tables["differences"]
        lead.append(f"The second table is of differences from `{named}` ({against.words}).")
    elif named:
        lead.append(f"`[report] baseline` names the run `{named}`, which the track does not have.")
    result = Tables(tables, board.notes, (leaderboard_plot(board),))
    page.add("leaderboard", result, title=title, lead=" ".join(lead), files=files, rows=_RUNS)


LEADERBOARD = Feature(
    {
        "leaderboard.tsv": ("Runs, best first, with [these columns](#leaderboard).", _board),
        "leaderboard.json": ("The same as JSON.", _board),
        "per_query.tsv": ("Each run's value on each query: `run query_id measure value`.", _per_query),
        "differences.tsv": (
            "All pairs of runs by the first measure, with tests and effect sizes.",
            own_differences,
        ),
        "groups.tsv": ("Letters: runs that share one do not differ significantly.", _groups),
    },
    _page,
    joint_plots={"leaderboard": ("the runs' means with 95% intervals, best on top", plot_of)},
    of_any_kind=True,
)
