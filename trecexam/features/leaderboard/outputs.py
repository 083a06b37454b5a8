"""The leaderboard in out/ and in the report, and its values by query."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trecexam.errors import TrecexamError
from trecexam.features.leaderboard.differences import Differences, differences, own_differences
from trecexam.features.leaderboard.joint_plot import joint_plot
from trecexam.line.assessment import Assessment
from trecexam.line.diagnostics import NO_RUNS, unread_answers
from trecexam.line.evaluation import leaderboard, own_leaderboard, values_of_runs, why_no_scores
from trecexam.line.output_files import Feature, FeaturePlot, OutputFiles, PlotMeasures
from trecexam.scores.leaderboard import Leaderboard, interval
from trecexam.scores.values import MeasureValues
from trecexam.tables.excerpt import shown
from trecexam.tables.plots.limits import squeezing
from trecexam.tables.plots.model import Plot, Size
from trecexam.tables.plots.rows import EDGE, draw_rows
from trecexam.tables.plots.style import NAMED, WIDTH
from trecexam.tables.result import Tables
from trecexam.tables.section import ReportPart
from trecexam.tables.table import Layout, Table, Value, to_tsv
from trecexam.tables.terminal import cut
from trecexam.tables.text import sentence

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def per_query_table(
    values: MeasureValues, measures: Sequence[str], runs: Sequence[str] | None = None
) -> Table:
    """`run query_id measure value`, sorted by run (None for all), then query, then the measures' order."""
    runs, query_ids = sorted(values.runs if runs is None else runs), sorted(values.query_ids)
    stacked = np.stack([values.matrix(name, runs, query_ids) for name in measures], axis=2)
    keys = itertools.product(runs, query_ids, measures)
    rows: list[tuple[Value, ...]] = [
        (*key, value) for key, value in zip(keys, stacked.ravel().tolist(), strict=True)
    ]
    return Table(("run", "query_id", "measure", "value"), tuple(rows))


def reported_table(board: Leaderboard, compared: Differences | None, baseline: Differences | None) -> Table:
    """A row a run: its group, of each measure the mean and its 95% interval, and the queries it answered.

    Args:
        compared: all pairs of runs; None for no groups.
        baseline: the runs against one; its differences are `MEASURE.against`, as texts.
    """
    against = [] if baseline is None else [_against(of.of_baseline()) for of in baseline.measures]

    def values(row_index: int) -> Iterator[Value]:
        row = board.rows[row_index]
        yield from (row.run, *(() if compared is None else (compared.groups.get(row.run),)))
        for at, score in enumerate(row.scores):
            yield from (score.mean, *interval(score, row.n_queries, measure=board.measures[at]))
            yield from (texts.get(row.run) for texts in against[at : at + 1])
        yield row.n_answered

    ends = ("", ".low", ".high", *((".against",) if against else ()))
    columns = [f"{name}{end}" for name in board.measures for end in ends]
    header = ("run", *(() if compared is None else ("group",)), *columns, "answered")
    rows = tuple(tuple(values(row_index)) for row_index in range(len(board.rows)))
    return Table(header, rows, layout=Layout(("run",), ranks=board.ranks))


def _against(baseline: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Run -> its difference from the baseline, with p value and sign."""
    signs = {run: "▲" if of["difference"] > 0 else "▼" for run, of in baseline.items() if of["reject"]}
    p = {run: shown(of["p-value corrected"]) or "–" for run, of in baseline.items()}  # noqa: RUF001
    return {
        run: f"{of['difference']:+.3f}, p {p[run]} {signs.get(run, '')}".rstrip()
        for run, of in baseline.items()
    }


#: Inches that a run takes, and all of them at most: a page in print.
_ROW, _MOST = 0.155, 8.2


def leaderboard_plot(board: Leaderboard) -> Plot:
    """The runs by the first measure. There must be one."""
    name = board.measures[0]
    rows = []
    for rank, row in zip(board.ranks, board.rows, strict=True):
        score = row.scores[0]
        ends = interval(score, row.n_queries, measure=name)
        rows.append((rank, row.run, row.n_queries, score.mean, score.stderr, *ends))
    best = board.rows[0]
    ranked = "" if len(rows) <= NAMED else "; the numbers at the side are ranks, names are in the table below"
    edge = EDGE if squeezing([row[3] for row in rows]).any() else ""
    return Plot(
        "leaderboard",
        f"Leaderboard by {name}",
        f"Mean over queries and its 95% interval (Student's t over queries){ranked}. Intervals that overlap "
        f"do not say that two runs are equally good: runs answer the same queries.{edge}",
        f"{len(rows)} runs by {name}; the best is {cut(best.run, 60)} with {best.scores[0].mean:.3f}.",
        Table(
            ("rank", "run", "n_queries", name, f"{name}.stderr", f"{name}.low", f"{name}.high"), tuple(rows)
        ),
        _draw,
        Size(WIDTH, min(_MOST, 0.7 + _ROW * max(len(rows), 3)), rows=True),
    )


def _draw(figure: Figure, plot: Plot) -> None:
    rows = plot.table.rows
    axes = figure.subplots()
    mean, low, high = (np.array([row[column] for row in rows], float) for column in (3, 5, 6))
    draw_rows(axes, [str(row[1]) for row in rows], mean, low, high)
    axes.set_xlabel(plot.table.header[3])


#: Runs that the page lists.
_RUNS = 200


def _leaderboard(track: Assessment) -> Mapping[str, bytes]:
    return leaderboard_files(own_leaderboard(track).with_notes(*unread_answers(track)))


def leaderboard_files(board: Leaderboard) -> dict[str, bytes]:
    """Return the contents of the leaderboard's files in out/."""
    return {"leaderboard.tsv": board.to_tsv().encode(), "leaderboard.json": board.to_json().encode()}


def _per_query(track: Assessment) -> Mapping[str, bytes]:
    values = values_of_runs(track)
    # A run at a time: the rows of all of them take five times as much as the file.
    runs = ((), *((run,) for run in sorted(values.runs)))
    header, *rows = (to_tsv(per_query_table(values, values.measures, part)) for part in runs)
    return {"per_query.tsv": "".join([header, *(text[len(header) :] for text in rows)]).encode()}


def _differences(track: Assessment) -> Mapping[str, bytes]:
    compared = own_differences(track)
    return {
        "differences.tsv": to_tsv(compared.tables["differences"]).encode(),
        "groups.tsv": to_tsv(compared.tables["groups"]).encode(),
    }


def leaderboard_report(track: Assessment) -> tuple[ReportPart, ...]:
    """The section "leaderboard"."""
    board = own_leaderboard(track)
    part = ReportPart("leaderboard", title="Leaderboard")
    why = _without_scores(track, board)
    if why:
        return (replace(part, result=Tables({}, board.notes), why=sentence(why)),)
    named = track.config.report.baseline
    baseline = differences(track, baseline=named) if named in track.runs else None
    compared = own_differences(track) if len(board.rows) > 1 else None
    means = f"all {board.n_queries:,} queries: one that a run skips counts 0"
    if board.average != "all":
        means = "the queries that each run answered, which flatters runs that skip some"
    lead = [f"Means over {means}. Below each mean is its 95% interval over queries."]
    if baseline is not None:
        lead.append(
            f"Below the intervals is the difference from `{named}` with its p value ({baseline.words}); "
            "▲ significantly better, ▼ worse."
        )
    elif named:
        lead.append(f"`[report] baseline` names the run `{named}`, which the track does not have.")
    if compared is not None:
        lead.append(
            f"Runs that share a letter do not differ significantly by {board.measures[0]} "
            f"({compared.words}); differences.tsv has all pairs with p values and effect sizes."
        )
    table = reported_table(board, compared, baseline)
    files = ("leaderboard.tsv", "per_query.tsv", *(("differences.tsv",) if compared else ()))
    result = Tables({"leaderboard": table}, board.notes, (leaderboard_plot(board),))
    return (replace(part, result=result, lead=" ".join(lead), files=files, rows=_RUNS),)


def _plot(track: Assessment, measures: PlotMeasures) -> Plot:
    board = own_leaderboard(track) if measures.measure is None else leaderboard(track, [measures.measure])
    why = _without_scores(track, board)
    if why:
        raise TrecexamError(why, path=track.folder.root)
    return leaderboard_plot(board)


def _without_scores(track: Assessment, board: Leaderboard) -> str:
    """Why a leaderboard has no number; "" where it has."""
    return (why_no_scores(track) or "") if board.rows else NO_RUNS


LEADERBOARD = Feature(
    (
        OutputFiles(
            {
                "leaderboard.tsv": "Runs, best first: each measure's mean and its standard error; `queries` "
                "where a run answers fewer than all.",
                "leaderboard.json": "The same as JSON.",
            },
            _leaderboard,
            first=True,
        ),
        OutputFiles(
            {"per_query.tsv": "Each run's value on each query: `run query_id measure value`."},
            _per_query,
            first=True,
        ),
        OutputFiles(
            {
                "differences.tsv": "All pairs of runs by the first measure, with tests and effect sizes.",
                "groups.tsv": "Letters: runs that share one do not differ significantly.",
            },
            _differences,
        ),
    ),
    leaderboard_report,
    {
        "leaderboard": FeaturePlot(
            "the runs' means with 95% intervals, best on top",
            _plot,
            ("measure",),
            lambda track, asked: joint_plot(track, asked.measure),
        )
    },
    of_any_kind=True,
)
