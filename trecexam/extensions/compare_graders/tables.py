"""The tables of several graders: against the official side, and of any two."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from trecexam.tables.table import Layout, Table, Value

if TYPE_CHECKING:
    from trecexam.extensions.compare_graders.compared import ComparedGrader
    from trecexam.extensions.compare_graders.raters import RaterAgreement
    from trecexam.scores.correlation import Correlation
    from trecexam.scores.kappa import Kappa

GRADER_COLUMNS = (
    "grader",
    "model",
    "prompt",
    "measure",
    "official_measure",
    "min_rating",
    "n_runs",
    "kendall_tau",
    "kendall_tau.low",
    "kendall_tau.high",
    "spearman_rho",
    "spearman_rho.low",
    "spearman_rho.high",
    "tau_ap",
    "kappa",
    "kappa.low",
    "kappa.high",
    "n_judged",
    "cells",
    "unrated_cells",
    "min_relevant",
)
#: What of them a terminal shows.
_LAYOUT = Layout(
    ("grader", "measure", "official_measure", "min_rating"),
    ("kendall_tau", "kappa", "spearman_rho", "n_runs", "n_judged", "min_relevant"),
    without=("model", "prompt"),
)
PAIR_COLUMNS = (
    "grader",
    "other_grader",
    "over",
    "query_id",
    "item_id",
    "min_rating",
    "other_min_rating",
    "n",
    "grader_only",
    "other_only",
    "agreement",
    "kappa",
    "kappa.low",
    "kappa.high",
    "kappa.linear",
    "kappa.quadratic",
)


class GraderRow(NamedTuple):
    """A grader's leaderboard by a measure at a min_rating against an official one.

    Attributes:
        min_rating: None where it has no bearing on the measure.
        kappa: of labels that reach min_rating against judgments that reach min_relevant; None without a
            min_rating or without judgments.
        n_judged: passages that have both labels.
        min_relevant: from this official label on a passage was relevant for kappa.
    """

    grader: ComparedGrader
    measure: Value
    official_measure: Value
    min_rating: int | None
    correlation: Correlation
    kappa: Kappa | None
    n_judged: int | None
    min_relevant: int | None


class PairRow(NamedTuple):
    """Two graders' agreement.

    Attributes:
        over: "labels", "ratings" or "item".
        query_id, item_id: of "item".
        min_ratings: of either grader; None where labels or ratings are compared as they are.
    """

    grader: str
    other_grader: str
    over: str
    query_id: str | None
    item_id: str | None
    min_ratings: tuple[int, int] | None
    agreement: RaterAgreement


def grader_table(rows: Iterable[GraderRow]) -> Table:
    """One row a grader, measure, official measure and min_rating."""
    lines: list[tuple[Value, ...]] = []
    for row in rows:
        c, kappa, counts = row.correlation, row.kappa, row.grader.track.counts
        lines.append(
            (
                row.grader.name,
                row.grader.model,
                row.grader.prompt,
                row.measure,
                row.official_measure,
                row.min_rating,
                c.n_runs,
                c.kendall_tau,
                c.tau_low,
                c.tau_high,
                c.spearman_rho,
                c.rho_low,
                c.rho_high,
                c.tau_ap,
                *((None, None, None) if kappa is None else (kappa.value, kappa.low, kappa.high)),
                row.n_judged,
                counts.cells,
                counts.cells - counts.ok,
                row.min_relevant,
            )
        )
    return Table(GRADER_COLUMNS, tuple(lines), layout=_LAYOUT)


def pair_table(rows: Iterable[PairRow]) -> Table:
    """One row a pair of graders, what is compared, and min_rating."""
    return Table(
        PAIR_COLUMNS,
        tuple(
            (
                row.grader,
                row.other_grader,
                row.over,
                row.query_id,
                row.item_id,
                *(row.min_ratings or (None, None)),
                row.agreement.n,
                row.agreement.first_only,
                row.agreement.second_only,
                row.agreement.agreement,
                row.agreement.kappa.value,
                row.agreement.kappa.low,
                row.agreement.kappa.high,
                row.agreement.linear,
                row.agreement.quadratic,
            )
            for row in rows
        ),
    )
