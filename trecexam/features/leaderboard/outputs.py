"""The leaderboard in out/ and in the report, and the values behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from trecexam.errors import TrecexamError
from trecexam.features.leaderboard.differences import differences, own_differences
from trecexam.features.leaderboard.joint_plot import joint_plot
from trecexam.features.leaderboard.plot import leaderboard_plot
from trecexam.features.leaderboard.tables import per_query_table, reported_table
from trecexam.line.assessment import Assessment
from trecexam.line.diagnostics import NO_RUNS
from trecexam.line.evaluation import leaderboard, own_leaderboard, rubric_values
from trecexam.line.output_files import Feature, FeaturePlot, OutputFiles, PlotMeasures
from trecexam.tables.plots.model import Plot
from trecexam.tables.result import Tables
from trecexam.tables.section import ReportPart
from trecexam.tables.table import to_tsv

#: Runs that the page lists.
_RUNS = 200


def _leaderboard(track: Assessment) -> Mapping[str, bytes]:
    board = own_leaderboard(track)
    return {"leaderboard.tsv": board.to_tsv().encode(), "leaderboard.json": board.to_json().encode()}


def _per_query(track: Assessment) -> Mapping[str, bytes]:
    values = rubric_values(track)
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
    if not board.rows:
        return (replace(part, result=Tables({}, board.notes), why=NO_RUNS),)
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
        lead.append(f"There is no run `{named}`, which `[report] baseline` names.")
    if compared is not None:
        lead.append(
            f"Runs that share a letter do not differ significantly by {board.measures[0]} "
            f"({compared.words}); differences.tsv has all pairs with p values and effect sizes."
        )
    table = reported_table(board, compared, baseline)
    files = ("leaderboard.tsv", "per_query.tsv", *(("differences.tsv",) if compared else ()))
    result = Tables({"leaderboard": table}, board.notes, (leaderboard_plot(board),))
    return (replace(part, result=result, lead=" ".join(lead), files=files, rows=_RUNS),)


def _plot(track: Assessment, asked: PlotMeasures) -> Plot:
    board = own_leaderboard(track) if asked.measure is None else leaderboard(track, [asked.measure])
    if not board.rows:
        raise TrecexamError(NO_RUNS, path=track.folder.runs)
    return leaderboard_plot(board)


LEADERBOARD = Feature(
    (
        OutputFiles(
            ("leaderboard.tsv", "leaderboard.json"),
            ("cells", "people", "runs", "settings"),
            _leaderboard,
            first=True,
        ),
        OutputFiles(("per_query.tsv",), ("cells", "runs", "settings"), _per_query, first=True),
        OutputFiles(("differences.tsv", "groups.tsv"), ("cells", "people", "runs", "settings"), _differences),
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
