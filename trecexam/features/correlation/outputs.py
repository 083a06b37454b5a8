"""How the automatic leaderboard agrees with the official one, in out/ and in the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
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
from trecexam.scores.paired_tests import MOST_RUNS
from trecexam.tables.result import Tables
from trecexam.tables.section import ReportPart
from trecexam.tables.text import sentence

R = TypeVar("R")
#: The measures that its plots may be asked of.
_SIDES = ("measure", "official_measure")
#: How the report's table is to be read.
_LEAD = (
    "With 95% intervals over queries (none with fewer than five queries, or where the runs have fewer than "
    "five distinct values on a side); each holds its coefficient. tau_ap weighs the top of the automatic "
    "ranking and takes the official side as the truth; tau_ap_b takes neither. rbo, rank-biased overlap, "
    "weighs the top of both rankings most; kendall@10 is tau of the best 10 runs."
)


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


def correlation_report(track: Assessment) -> tuple[ReportPart, ...]:
    """The head of the section "official"."""
    comparison, outliers = own_comparison(track), own_outliers(track)
    part = ReportPart("official", title="Automatic against official", link="Official side")
    if comparison is not None and outliers is not None:
        plots = official_plots(track, comparison, outliers)
        result = Tables({"correlation": comparison.table}, comparison.notes, tuple(plots.values()))
        why = "" if "thresholds" in plots else "min_rating has no bearing on any of the track's measures."
        return (replace(part, result=result, lead=_LEAD, why=why, files=("correlation.tsv",)),)
    why = (not_computable(track) or nothing_to_compare(track).reason) if track.runs else NO_RUNS
    return (replace(part, why=sentence(why)),)


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
