"""Agreement of automatic labels with official judgments: one long table, crosstabs, JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from trecexam.tables.table import Table, Value, to_aligned

if TYPE_CHECKING:
    from trecexam.features.agreement.arithmetic import Agreement, Crosstab
    from trecexam.scores.kappa import Kappa

COLUMNS = (
    "table",
    "min_rating",
    "min_answers",
    "min_relevant",
    "label",
    "judgment",
    "count",
    "kappa",
    "kappa.low",
    "kappa.high",
    "kappa.linear",
    "kappa.quadratic",
)
#: Stands for the sum over all labels or judgments.
ALL = "all"


def agreement_table(agreements: Iterable[Agreement]) -> Table:
    """A row for each cell of each table and for each sum (`all`).

    The row of a cell has the kappa of its label or another against its judgment or another, where these
    are a pair; the row of `all` labels and judgments that of the whole table, also weighted.
    """
    rows: list[tuple[Value, ...]] = []
    for agreement in agreements:
        t = agreement.thresholds
        for table in agreement.tables:
            key = (table.name, t.min_rating, t.min_answers, t.min_relevant)
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


def agreement_crosstabs(agreements: Iterable[Agreement]) -> str:
    """The same for people: labels down, judgments across, each row with its kappa."""
    return "\n".join(_sections(agreements))


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
    return Table(header, tuple(rows))


def agreement_json(agreement: Agreement) -> dict[str, Any]:
    """Everything of one choice of thresholds, with full precision."""
    return {
        **asdict(agreement.thresholds),
        "same_scale": agreement.same_scale,
        "accuracy": agreement.accuracy,
        "precision": agreement.precision,
        "recall": agreement.recall,
        "tables": [_table_json(table) for table in agreement.tables],
    }


def _sections(agreements: Iterable[Agreement]) -> Iterator[str]:
    for agreement in agreements:
        t = agreement.thresholds
        yield (
            f"min_rating {t.min_rating}, min_answers {t.min_answers}, min_relevant {t.min_relevant}; "
            f"binary: accuracy {_share(agreement.accuracy)}, precision {_share(agreement.precision)}, "
            f"recall {_share(agreement.recall)}\n"
        )
        for table in agreement.tables:
            yield to_aligned(crosstab(table))


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def _table_json(table: Crosstab) -> dict[str, Any]:
    return {
        "table": table.name,
        "labels": table.labels,
        "judgments": table.judgments,
        "counts": table.counts.tolist(),
        "pairs": [
            {"label": label, "judgment": table.judgments[column], **_kappa_json(value)}
            for label, column, value in zip(table.labels, table.paired, table.kappas, strict=True)
            if column is not None
        ],
        **_kappa_json(table.kappa),
        "kappa_linear": table.linear,
        "kappa_quadratic": table.quadratic,
    }


def _kappa_json(value: Kappa) -> dict[str, float]:
    return {"kappa": value.value, "kappa_low": value.low, "kappa_high": value.high}


def _numbers(value: Kappa | None) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if value is None else (value.value, value.low, value.high)
