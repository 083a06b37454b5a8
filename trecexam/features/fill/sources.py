"""Merged qrels as a file, and the table beside it that says of each line who said it."""

from __future__ import annotations

from collections.abc import Sequence

from converters.trec_qrels import qrels_line
from trecexam.features.fill.arithmetic.merging import Machine, MergedRow
from trecexam.tables.table import Table

HEADER = (
    "query_id",
    "iteration",
    "doc_id",
    "label",
    "source",
    "grader",
    "model",
    "prompt",
    "rating",
    "confidence",
    "rule",
    "who",
    "why",
)


def merged_qrels(rows: Sequence[MergedRow]) -> bytes:
    """The lines in their order, as trec_eval takes them."""
    return b"".join(qrels_line(row.qrel) for row in rows)


def sources_table(rows: Sequence[MergedRow], rule: str) -> Table:
    """A row for each line, in the same order. `rule` is that of the lines that no person wrote."""
    return Table(HEADER, tuple(_row(row, rule) for row in rows))


def _row(row: MergedRow, rule: str) -> tuple[str | int | float | None, ...]:
    by = row.machine or Machine("")
    return (
        row.qrel.query_id,
        row.qrel.iteration,
        row.qrel.doc_id,
        row.label,
        row.source,
        by.grader,
        by.model,
        by.prompt,
        row.rating,
        row.confidence,
        "" if row.machine is None else rule,
        row.who,
        row.why,
    )
