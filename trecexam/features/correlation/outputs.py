"""Files and report section on the agreement of the automatic leaderboard with the official one."""

from __future__ import annotations

from trecexam.errors import sentence
from trecexam.feature import Feature
from trecexam.features.correlation.comparison import LeaderboardComparison, compare
from trecexam.features.correlation.paired_scores import (
    NothingToCompareError,
    nothing_to_compare,
    paired_scores,
)
from trecexam.features.correlation.scatter_plot import scatter_of, scatter_plot
from trecexam.features.correlation.thresholds_plot import thresholds_of
from trecexam.files.cache import memoized
from trecexam.grades.diagnostics import NO_RUNS, not_computable
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.page.page import Page
from trecexam.results.result import Tables

#: Explanation of the table in the report.
_LEAD = (
    "With 95% intervals over queries (none with fewer than five queries, or where the runs have fewer than "
    "five distinct values on a side); each holds its coefficient. tau_ap weighs the top of the automatic "
    "ranking and takes the official side as the truth; tau_ap_b takes neither. rbo, rank-biased overlap, "
    "weighs the top of both rankings most; kendall@10 is tau of the best 10 runs."
)


@memoized
def own_comparison(track: GradedTrack) -> LeaderboardComparison | None:
    """Return the comparison by the track's own measures; None where there is nothing to compare."""
    try:
        # Measures that cannot be computed are in rejected.tsv, with the reason.
        return compare(track) if not_computable(track) is None else None
    except NothingToCompareError:
        return None


def _page(track: GradedTrack, page: Page) -> None:
    """Add the head of the section "official"."""
    comparison = own_comparison(track)
    name, title, link = "official", "Automatic against official", "Official side"
    if comparison is None:
        why = (not_computable(track) or nothing_to_compare(track).reason) if track.runs else NO_RUNS
        page.add(name, title=title, link=link, why=sentence(why))
        return
    plots = (scatter_plot(paired_scores(track)[0], comparison.pairs[0][1]),)
    result = Tables({"correlation": comparison.table}, comparison.notes, plots)
    page.add(name, result, title=title, link=link, lead=_LEAD, files=("correlation.tsv",))


CORRELATION = Feature(
    {
        "correlation.tsv": (
            "Rank correlations with the official leaderboard, with 95% intervals.",
            own_comparison,
        ),
        "correlation.json": ("The same as JSON.", own_comparison),
    },
    _page,
    {
        "scatter": ("the runs by automatic and by official measure", scatter_of),
        "thresholds": ("Kendall's tau by the rating from which on items count", thresholds_of),
    },
)
