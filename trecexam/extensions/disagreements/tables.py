"""Tables of swapped pairs and outliers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, get_args

from trecexam.extensions.disagreements.swaps import Verdict
from trecexam.features.correlation.tables import LAYOUT
from trecexam.tables.table import Table, Value

if TYPE_CHECKING:
    from trecexam.extensions.disagreements.swaps import Swap, Swaps
    from trecexam.scores.rank_correlation.outliers import Outlier

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
    """A row per swapped pair: the compared measures (`keys`), the runs, their differences and the tests."""
    return Table(
        (*keys, *SWAP_COLUMNS),
        tuple(
            (
                *key,
                s.run_a,
                s.run_b,
                s.official_difference,
                s.rubric_difference,
                s.official_p,
                s.rubric_p,
                s.official_p_holm,
                s.rubric_p_holm,
                s.verdict,
            )
            for key, s in rows
        ),
        layout=LAYOUT,
    )


def pairs_table(comparisons: Iterable[tuple[tuple[Value, ...], Swaps]], keys: tuple[str, ...]) -> Table:
    """A row per comparison: the number of pairs of runs, in total and of each kind."""
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
            for key, of in comparisons
        ),
    )


def outliers_table(rows: Iterable[tuple[tuple[Value, ...], Outlier]], keys: tuple[str, ...]) -> Table:
    """A row per run: the compared measures (`keys`), then its ranks and means on both sides."""
    return Table(
        (*keys, *OUTLIER_COLUMNS),
        tuple(
            (*key, o.run, o.rubric_rank, o.official_rank, o.difference, o.rubric_mean, o.official_mean)
            for key, o in rows
        ),
        layout=LAYOUT,
    )
