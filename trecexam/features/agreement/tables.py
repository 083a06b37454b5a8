"""Agreement of automatic labels with official judgments: one long table, and labels by judgments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trecexam.line.relevance import Thresholds
from trecexam.tables.table import Layout, Table, Value

if TYPE_CHECKING:
    from trecexam.features.agreement.arithmetic import Agreement, Crosstab
    from trecexam.scores.kappa import Kappa

COLUMNS = (
    "table",
    *Thresholds._fields[:3],
    "label",
    "judgment",
    "count",
    "kappa",
    "kappa.low",
    "kappa.high",
    "kappa.linear",
    "kappa.quadratic",
)
#: Of the binary table.
FIGURES = ("accuracy", "precision", "recall", "kappa", "kappa.low", "kappa.high")
#: Stands for the sum over all labels or judgments.
ALL = "all"


def agreement_table(agreements: Iterable[Agreement]) -> Table:
    """A row for each cell of each table and for each sum (`all`).

    The row of a cell has the kappa of its label or another against its judgment or another, where these
    are a pair; the row of `all` labels and judgments that of the whole table, also weighted.
    """
    rows: list[tuple[Value, ...]] = []
    for agreement in agreements:
        for table in agreement.tables:
            key = (table.name, *agreement.thresholds[:3])
            for number, label in enumerate(table.labels):
                counts = table.counts[number].tolist()
                for column, (judgment, count) in enumerate(zip(table.judgments, counts, strict=True)):
                    of_pair = _numbers(table.kappas[number] if column == table.paired[number] else None)
                    rows.append((*key, label, judgment, count, *of_pair, None, None))
                rows.append((*key, label, ALL, sum(counts), None, None, None, None, None))
            sums = table.counts.sum(axis=0).tolist()
            rows += [
                (*key, ALL, judgment, count, None, None, None, None, None)
                for judgment, count in zip(table.judgments, sums, strict=True)
            ]
            whole = (*_numbers(table.kappa), table.linear, table.quadratic)
            rows.append((*key, ALL, ALL, sum(sums), *whole))
    return Table(COLUMNS, tuple(rows))


def thresholds_table(agreements: Iterable[Agreement]) -> Table:
    """A row for each choice of thresholds, with the figures of its binary table."""
    rows: list[tuple[Value, ...]] = [
        (
            *(*agreement.thresholds[:4], agreement.thresholds.same_scale),
            *(agreement.accuracy, agreement.precision, agreement.recall),
            *_numbers(agreement.binary.kappa),
        )
        for agreement in agreements
    ]
    return Table((*Thresholds._fields[:4], "same_scale", *FIGURES), tuple(rows))


def crosstabs(agreements: Sequence[Agreement]) -> dict[str, Table]:
    """The tables for people by name: labels down, judgments across, each row with its kappa."""
    found = {}
    for number, agreement in enumerate(agreements, 1):
        for table in agreement.tables:
            name = table.name if len(agreements) == 1 else f"{table.name} {number}"
            found[name] = replace(
                crosstab(table), caption="" if len(agreements) == 1 else str(agreement.thresholds)
            )
    return found


def crosstab(table: Crosstab) -> Table:
    """Labels down, judgments across; `against` is the judgment that a row's kappa is with."""
    judged = [f"judged {judgment}" for judgment in table.judgments]
    header = (f"{table.name} label", *judged, ALL, "against", "kappa", "kappa.low", "kappa.high")
    rows: list[tuple[Value, ...]] = []
    for label, counts, column, value in zip(
        table.labels, table.counts.tolist(), table.paired, table.kappas, strict=True
    ):
        against = None if column is None else judged[column]
        rows.append((label, *counts, sum(counts), against, *_numbers(value)))
    sums = table.counts.sum(axis=0).tolist()
    rows.append((ALL, *sums, sum(sums), None, *_numbers(table.kappa)))
    return Table(header, tuple(rows), layout=Layout(header[:1]))


def _numbers(value: Kappa | None) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if value is None else (value.value, value.low, value.high)
