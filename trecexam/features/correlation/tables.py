"""The tables of correlations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple
from typing import TYPE_CHECKING, get_args

from trecexam.scores.rank_correlation.swaps import Verdict
from trecexam.tables.table import Layout, Table, Value

if TYPE_CHECKING:
    from trecexam.scores.correlation import Correlation
    from trecexam.scores.rank_correlation.outliers import Outlier
    from trecexam.scores.rank_correlation.swaps import Swap, Swaps

#: What a row of these tables is about, and what a terminal shows before all else.
LAYOUT = Layout(
    keys=(
        "measure",
        "other_measure",
        "official_measure",
        "min_rating",
        "n_queries",
        "query_id",
        "run_a",
        "run_b",
        "run",
    ),
    first=("kendall_tau", "spearman_rho", "tau_ap", "tau_ap_b", "rbo", "verdict", "kendall@10"),
)
#: The columns of every correlation table, after those that say what is compared: Correlation's attributes.
CORRELATION_COLUMNS = (
    "n_runs",
    "kendall_tau",
    "spearman_rho",
    "tau_ap",
    "kendall_tau.low",
    "kendall_tau.high",
    "rbo",
    "spearman_rho.low",
    "spearman_rho.high",
    "tau_ap.low",
    "tau_ap.high",
    "rbo.low",
    "rbo.high",
    "tau_ap_b",
    "kendall@10",
    "kendall@15",
    "kendall@20",
    "tau_ap_b.low",
    "tau_ap_b.high",
    "kendall@10.low",
    "kendall@10.high",
    "kendall@15.low",
    "kendall@15.high",
    "kendall@20.low",
    "kendall@20.high",
)


def correlation_table(pairs: Iterable[tuple[tuple[Value, ...], Correlation]], keys: tuple[str, ...]) -> Table:
    """One row a comparison: what is compared (`keys`), then the coefficients."""
    rows: Iterable[tuple[Value, ...]] = ((*key, *astuple(c)) for key, c in pairs)
    return Table((*keys, *CORRELATION_COLUMNS), tuple(rows), layout=LAYOUT)


#: The columns after those that say what is compared.
SWAP_COLUMNS = (
    "run_a",
    "run_b",
    "official_difference",
    "rubric_difference",
    "official_p",
    "rubric_p",
    "official_p.holm",
    "rubric_p.holm",
    "verdict",
)
OUTLIER_COLUMNS = ("run", "rubric_rank", "official_rank", "difference", "rubric_mean", "official_mean")


def swaps_table(rows: Iterable[tuple[tuple[Value, ...], Swap]], keys: tuple[str, ...]) -> Table:
    """One row a swapped pair: what is compared (`keys`), then the runs, their differences and the tests."""
    return Table(
        (*keys, *SWAP_COLUMNS),
        tuple((*key, *(getattr(s, name.replace(".", "_")) for name in SWAP_COLUMNS)) for key, s in rows),
        layout=LAYOUT,
    )


def pairs_table(found: Iterable[tuple[tuple[Value, ...], Swaps]], keys: tuple[str, ...]) -> Table:
    """One row a comparison: how many pairs of runs it has, and how many of them are of each kind."""
    verdicts = get_args(Verdict)
    header = ("n_pairs", "n_swapped", "n_tied", *(f"{each}.swapped" for each in verdicts))
    return Table(
        (*keys, *header, *(f"{each}.agreed" for each in verdicts)),
        tuple(
            (
                *(*key, of.n_pairs, len(of.swaps), of.n_tied),
                *(of.disagreements[each] for each in verdicts),
                *(of.agreements[each] for each in verdicts),
            )
            for key, of in found
        ),
    )


def outliers_table(rows: Iterable[tuple[tuple[Value, ...], Outlier]], keys: tuple[str, ...]) -> Table:
    """One row a run: what is compared (`keys`), then its ranks and means on both sides."""
    return Table(
        (*keys, *OUTLIER_COLUMNS),
        tuple((*key, *(getattr(o, name) for name in OUTLIER_COLUMNS)) for key, o in rows),
        layout=LAYOUT,
    )
