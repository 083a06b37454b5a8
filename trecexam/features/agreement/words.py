"""The notes of agreement: what is compared, from where on it is relevant, and what a figure says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from trecexam.scores.kappa import MIN_QUERIES
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.features.agreement.arithmetic import Agreement, Crosstab, Pairs


def agreement_notes(agreed: Agreement, grader: str, source: str) -> tuple[str, ...]:
    """Three lines: which axis is whose, both thresholds and why, how graded labels are paired and why.

    Args:
        grader, source: what gave the labels, and the file of the judgments.
    """
    at = agreed.thresholds
    return (
        f"rows are labels of {grader}, columns are people's judgments ({source})",
        f"{at.in_words} ({at.reason})",
        _pairing(agreed),
    )


def _pairing(agreed: Agreement) -> str:
    if agreed.thresholds.same_scale:
        return "graded table: a label is compared with the judgment of the same number"
    table, groups = agreed.graded, agreed.merged
    sides = ", ".join(
        f"labels {label} with judgments {judgment}"
        for label, judgment in zip(groups.labels, groups.judgments, strict=True)
    )
    return (
        "graded table: the scales differ, so a label is compared with the lowest judgment of its group "
        f"({sides}){_first_pair(table)}"
    )


def _first_pair(table: Crosstab) -> str:
    """The pair of the highest label, as an example."""
    column = table.paired[0]
    return "" if column is None else f"; label {table.labels[0]} with judgment {table.judgments[column]}"


def counts_note(pairs: Pairs, source: str) -> str:
    """How many passages have both labels, and how many only one."""
    return (
        f"{len(pairs.query):,} passages of {pairs.n_queries:,} queries have a label and a judgment "
        f"({source}); {pairs.n_label_only:,} have only a label, {pairs.n_judgment_only:,} only a judgment"
    )


def unpooled_note(n_unpooled: int) -> Iterator[str]:
    """What tells published tables from these, where judged passages are not pooled."""
    if n_unpooled:
        yield (
            f"without a label are {plural(n_unpooled, 'judged passage')} outside of the runs' first "
            "ranks; published tables have them: `pool_judged = true` in [track] grades them too"
        )


def left_out_note(left_out: Mapping[str, Any]) -> Iterator[str]:
    """Whose ratings do not count."""
    if left_out["who"]:
        yield (
            f"left out: the ratings of {', '.join(left_out['who'])} in place of the grader's "
            f"({left_out['cells']:,} cells, {left_out['passages']:,} passages)"
        )


def figures_note(agreed: Agreement) -> Iterator[str]:
    """The figures of the binary table, and where they say nothing."""
    at, binary = str(agreed.thresholds), agreed.binary
    value, low, high = binary.kappa.value, binary.kappa.low, binary.kappa.high
    interval = "" if math.isnan(low) else f" (95% interval {low:.2f} to {high:.2f}, queries kept together)"
    yield (
        f"binary table at {at}: accuracy {_share(agreed.accuracy)}, precision {_share(agreed.precision)}, "
        f"recall {_share(agreed.recall)}, Cohen's kappa {_share(value)}{interval}"
    )
    for side, names, sums in (
        ("label", binary.labels, binary.counts.sum(axis=1)),
        ("judgment", binary.judgments, binary.counts.sum(axis=0)),
    ):
        given = [name for name, n in zip(names, sums.tolist(), strict=True) if n]
        if len(given) == 1:
            yield f"{at}: every {side} is {given[0]}, so the binary kappa says nothing"


def interval_note(n_queries: int) -> Iterator[str]:
    """Why no kappa has an interval, where there are too few queries."""
    if n_queries < MIN_QUERIES:
        yield f"no intervals: they need passages of at least {MIN_QUERIES} queries"


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"
