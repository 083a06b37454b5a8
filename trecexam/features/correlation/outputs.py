"""How the automatic leaderboard agrees with the official one, in out/ and in the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from trecexam.features.correlation.comparison import (
    LeaderboardComparison,
    Outliers,
    compare,
    outlying,
    swapped,
)
from trecexam.features.correlation.paired_scores import NothingToCompareError, nothing_to_compare
from trecexam.features.correlation.plots import official_plots, scatter_of, thresholds_of
from trecexam.line.assessment import EVERYTHING, Assessment
from trecexam.line.diagnostics import NO_RUNS
from trecexam.line.output_files import Feature, FeaturePlot, OutputFiles
from trecexam.line.rejected import not_computable
from trecexam.scores.correlation import TOPS
from trecexam.scores.paired_tests import MOST_RUNS
from trecexam.tables.excerpt import excerpt
from trecexam.tables.plots.model import Plot
from trecexam.tables.section import FeatureReport, ReportPart
from trecexam.tables.text import sentence

R = TypeVar("R")
#: The measures that its plots may be asked of.
_SIDES = ("measure", "official_measure")
#: Rows that the page shows; the file has the rest.
_ROWS = 50
#: Columns of the table, and what the page calls them.
_COLUMNS = {
    "measure": "automatic",
    "official_measure": "official",
    "n_runs": "runs",
    "kendall_tau": "Kendall's tau",
    "kendall_tau.low": "low",
    "kendall_tau.high": "high",
    "spearman_rho": "Spearman's rho",
    "tau_ap": "tau_AP",
    "rbo": "RBO",
    "tau_ap_b": "tau_AP,b",
    "kendall@10": "tau of the best 10",
}


def own_comparison(track: Assessment) -> LeaderboardComparison | None:
    """The comparison by the track's own measures; None where there is nothing to compare."""
    # Otherwise rejected.tsv says why.
    return track.derived("correlation", EVERYTHING, lambda: _if_any(track, compare))


def own_outliers(track: Assessment) -> Outliers | None:
    """The outliers by the track's own measures; None where there is nothing to compare."""
    return track.derived("outliers", EVERYTHING, lambda: _if_any(track, outlying))


def _if_any(track: Assessment, compared: Callable[[Assessment], R]) -> R | None:
    """The result; None where there is nothing to compare, or a measure cannot be computed."""
    try:
        return compared(track) if not_computable(track) is None else None
    except NothingToCompareError:
        return None


def _correlation(track: Assessment) -> Mapping[str, bytes]:
    compared = own_comparison(track)
    if compared is None:
        return {}
    return {
        "correlation.tsv": compared.to_tsv().encode(),
        "correlation.json": compared.to_json().encode(),
    }


def _swaps(track: Assessment) -> Mapping[str, bytes]:
    swaps = _if_any(track, partial(swapped, most=MOST_RUNS))
    return {} if swaps is None else {"swaps.tsv": swaps.to_tsv().encode()}


def _outliers(track: Assessment) -> Mapping[str, bytes]:
    outliers = own_outliers(track)
    return {} if outliers is None else {"outliers.tsv": outliers.to_tsv().encode()}


def correlation_report(track: Assessment) -> FeatureReport:
    """The head of the section "official", and its plots where there is something to compare."""
    comparison, outliers = own_comparison(track), own_outliers(track)
    plots: tuple[Plot, ...] = ()
    values: dict[str, object] = {"why": None}
    if comparison is not None and outliers is not None:
        plots = tuple(official_plots(track, comparison, outliers).values())
        enough = any(correlation.n_runs >= TOPS[0] for _, correlation in comparison.pairs)
        columns = {name: shown for name, shown in _COLUMNS.items() if enough or name != "kendall@10"}
        values["correlation"] = excerpt(comparison.table, _ROWS, "correlation.tsv", columns)
        values["remarks"] = tuple(map(sentence, comparison.notes))
    elif track.runs:
        values["why"] = sentence(not_computable(track) or nothing_to_compare(track).reason)
    else:
        values["why"] = NO_RUNS
    html = Path(__file__).with_name("section.html")
    part = ReportPart("official", html, values, "Automatic against official", "Official side")
    return FeatureReport((part,), plots)


CORRELATION = Feature(
    (OutputFiles(("correlation.tsv", "correlation.json"), EVERYTHING, _correlation),),
    correlation_report,
    {
        "scatter": FeaturePlot("the runs by automatic and by official measure", scatter_of, _SIDES),
        "thresholds": FeaturePlot(
            "Kendall's tau by the rating from which on items count", thresholds_of, _SIDES
        ),
    },
)
DISAGREEMENTS = Feature(
    (
        OutputFiles(("swaps.tsv",), EVERYTHING, _swaps),
        OutputFiles(("outliers.tsv",), EVERYTHING, _outliers),
    )
)
