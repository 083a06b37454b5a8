"""The leaderboard in out/ and in the report, and the values behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from trecexam.errors import TrecexamError
from trecexam.features.leaderboard.differences import differences, own_differences
from trecexam.features.leaderboard.plot import leaderboard_plot
from trecexam.features.leaderboard.tables import per_query_table
from trecexam.line.assessment import Assessment
from trecexam.line.diagnostics import NO_RUNS
from trecexam.line.evaluation import leaderboard, own_leaderboard, rubric_values
from trecexam.line.output_files import Feature, FeaturePlot, OutputFiles, PlotMeasures
from trecexam.scores.leaderboard import Score, interval
from trecexam.tables.plots.model import Plot
from trecexam.tables.section import FeatureReport, ReportPart
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


def leaderboard_report(track: Assessment) -> FeatureReport:
    """The section "leaderboard", and its plot where there are runs."""
    board = own_leaderboard(track)
    named = track.config.report.baseline
    compared = differences(track, baseline=named) if named in track.runs else None
    values = {
        "board": board if board.rows else None,
        "spread": _spread,
        "most_runs": _RUNS,
        "compared": own_differences(track) if len(board.rows) > 1 else None,
        "baseline": compared,
        "against": [of.of_baseline() for of in compared.measures] if compared else [],
        "missing": None if compared else named,
        "why": NO_RUNS,
    }
    part = ReportPart("leaderboard", Path(__file__).with_name("section.html"), values, "Leaderboard")
    return FeatureReport((part,), (leaderboard_plot(board),) if board.rows else ())


def _plot(track: Assessment, asked: PlotMeasures) -> Plot:
    board = own_leaderboard(track) if asked.measure is None else leaderboard(track, [asked.measure])
    if not board.rows:
        raise TrecexamError(NO_RUNS, path=track.folder.runs)
    return leaderboard_plot(board)


def _spread(score: Score, n: int) -> str:
    """The 95% interval of a mean over n queries; "" where there is none."""
    low, high = interval(score, n)
    return "" if math.isnan(low) else f"{low:.3f} to {high:.3f}"


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
    {"leaderboard": FeaturePlot("the runs' means with 95% intervals, best on top", _plot, ("measure",))},
    of_any_kind=True,
)
