"""The tables of correlations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple
from typing import TYPE_CHECKING

from trecexam.tables.table import Layout, Table, Value

if TYPE_CHECKING:
    from trecexam.scores.correlation import Correlation

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
    first=("kendall_tau", "spearman_rho", "tau_ap", "n_runs", "tau_ap_b", "rbo", "verdict", "kendall@10"),
    short={"official_measure": "official", "min_rating": "rating"},
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
    "pearson_r",
    "tau_gap",
)


def correlation_table(pairs: Iterable[tuple[tuple[Value, ...], Correlation]], keys: tuple[str, ...]) -> Table:
    """One row a comparison: what is compared (`keys`), then the coefficients."""
    rows: Iterable[tuple[Value, ...]] = ((*key, *astuple(c)) for key, c in pairs)
    return Table((*keys, *CORRELATION_COLUMNS), tuple(rows), layout=LAYOUT)
