"""How the automatic leaderboard agrees with the official one, in out/ and in the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from trecexam.features.correlation.comparison import LeaderboardComparison, compare
from trecexam.features.correlation.paired_scores import if_any, nothing_to_compare
from trecexam.features.correlation.plots import scatter, scatter_of, thresholds_of
from trecexam.files.cache import memoized
from trecexam.line.assessment import Assessment
from trecexam.line.diagnostics import NO_RUNS
from trecexam.line.output_files import Feature, FeaturePlot, OutputFiles
from trecexam.line.rejected import not_computable
from trecexam.tables.result import Tables
from trecexam.tables.section import ReportPart
from trecexam.tables.text import sentence

_FILES = {
    "correlation.tsv": "Rank correlations with the official leaderboard, with 95% intervals.",
    "correlation.json": "The same as JSON.",
}
#: The measures that its plots may be asked of.
_SIDES = ("measure", "official_measure")
#: How the report's table is to be read.
_LEAD = (
    "With 95% intervals over queries (none with fewer than five queries, or where the runs have fewer than "
    "five distinct values on a side); each holds its coefficient. tau_ap weighs the top of the automatic "
    "ranking and takes the official side as the truth; tau_ap_b takes neither. rbo, rank-biased overlap, "
    "weighs the top of both rankings most; kendall@10 is tau of the best 10 runs."
)


@memoized
def own_comparison(track: Assessment) -> LeaderboardComparison | None:
    """The comparison by the track's own measures; None where there is nothing to compare."""
    # Otherwise rejected.tsv says why.
    return if_any(track, compare)


def _correlation(track: Assessment) -> Mapping[str, bytes]:
    compared = own_comparison(track)
    if compared is None:
        return {}
    return {
        "correlation.tsv": compared.to_tsv().encode(),
        "correlation.json": compared.to_json().encode(),
    }


def correlation_report(track: Assessment) -> tuple[ReportPart, ...]:
    """The head of the section "official"."""
    comparison = own_comparison(track)
    part = ReportPart("official", title="Automatic against official", link="Official side")
    if comparison is not None:
        plots = (scatter(track, comparison),)
        result = Tables({"correlation": comparison.table}, comparison.notes, plots)
        return (replace(part, result=result, lead=_LEAD, files=("correlation.tsv",)),)
    why = (not_computable(track) or nothing_to_compare(track).reason) if track.runs else NO_RUNS
    return (replace(part, why=sentence(why)),)


CORRELATION = Feature(
    (OutputFiles(_FILES, _correlation),),
    correlation_report,
    {
        "scatter": FeaturePlot("the runs by automatic and by official measure", scatter_of, _SIDES),
        "thresholds": FeaturePlot(
            "Kendall's tau by the rating from which on items count", thresholds_of, _SIDES
        ),
    },
)
