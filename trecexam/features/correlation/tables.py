"""The tables of correlations."""

from __future__ import annotations

from collections.abc import Iterable

from trecexam.results.table import Layout, Table, Value
from trecexam.scores.correlation import Coefficient, Correlation

#: What a row of these tables is about, and what a terminal shows before all else.
LAYOUT = Layout(
    keys=("measure", "other_measure", "official_measure", "min_rating", "query_id"),
    first=("kendall_tau", "spearman_rho", "tau_ap", "n_runs", "tau_ap_b", "rbo", "kendall@10"),
    short={"official_measure": "official", "min_rating": "rating"},
)


def _ends(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}.{end}" for name in names for end in ("low", "high"))


_TOPS = ("kendall@10", "kendall@15", "kendall@20")
#: The columns of every correlation table, after those that say what is compared.
CORRELATION_COLUMNS = (
    *("n_runs", "kendall_tau", "spearman_rho", "tau_ap", *_ends("kendall_tau")),
    *("rbo", *_ends("spearman_rho", "tau_ap", "rbo")),
    *("tau_ap_b", *_TOPS, *_ends("tau_ap_b", *_TOPS)),
    *("pearson_r", "tau_gap"),
)


def correlation_table(pairs: Iterable[tuple[tuple[Value, ...], Correlation]], keys: tuple[str, ...]) -> Table:
    """Return a row for each comparison: what is compared (`keys`), then the coefficients."""
    rows: Iterable[tuple[Value, ...]] = (
        (*key, *(_value(c, column) for column in CORRELATION_COLUMNS)) for key, c in pairs
    )
    return Table((*keys, *CORRELATION_COLUMNS), tuple(rows), layout=LAYOUT)


def _value(correlation: Correlation, column: str) -> float:
    """Return the value of a column: a number of the correlation, or of one of its coefficients."""
    name, _, end = column.replace("@", "_at_").partition(".")
    found = getattr(correlation, name)
    return float(getattr(found, end or "value")) if isinstance(found, Coefficient) else found
