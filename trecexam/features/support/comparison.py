"""Labels of support from a file, in place of the grader's or beside them; people's beside its."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from converters.errors import ConversionError
from converters.support_labels import LABELS, read_support_labels
from trecexam.errors import TrecexamError
from trecexam.files.stamps import Rejected
from trecexam.line.sheets import MISSING
from trecexam.line.support import SupportCells
from trecexam.scores.kappa import Kappa, kappa, weighted_kappa
from trecexam.tables.table import Table
from trecexam.tables.text import plural

#: (run, query_id, place of the sentence, doc_id).
Pair = tuple[str, str, int, str]
K = TypeVar("K")


@dataclass(frozen=True)
class SupportAgreement:
    """Two sources of labels of the same citations.

    Attributes:
        counts: shape (queries, 3, 3): citations by the track's label and by the file's, of `LABELS`.
        kappa: Cohen's, with an interval that keeps a query's citations together.
        weighted: with linear weights; NaN where there is none.
        ours_only, theirs_only: citations that one of them has a label of.
        ours, theirs: what the two are called.
    """

    counts: NDArray[np.int64]
    kappa: Kappa
    weighted: float
    ours_only: int
    theirs_only: int
    ours: str = "of the track"
    theirs: str = "file"

    @property
    def table(self) -> Table:
        """The track's labels by the others, summed over queries."""
        table = self.counts.sum(axis=0).tolist()
        rows = tuple((name, *row) for name, row in zip(LABELS, table, strict=True))
        return Table(("label", *(f"{self.theirs}: {name}" for name in LABELS)), rows)

    def lines(self) -> tuple[str, ...]:
        """What it comes to."""
        n = int(self.counts.sum())
        same = int(np.trace(self.counts.sum(axis=0)))
        known = self.kappa.low == self.kappa.low
        ends = f" (95% interval {self.kappa.low:.2f} to {self.kappa.high:.2f})" if known else ""
        alone = (
            f"{self.ours_only:,} have only a label {self.ours}, {self.theirs_only:,} only one of "
            f"{'people' if self.theirs == 'people' else 'the file'}"
        )
        if not n:
            return (f"no citation has both labels; {alone}",)
        kappas = f"Cohen's kappa {self.kappa.value:.2f}{ends}, with linear weights {self.weighted:.2f}"
        if self.kappa.value != self.kappa.value:
            kappas = "Cohen's kappa is not defined: all labels are the same"
        return (
            f"{plural(n, 'citation')} with both labels, {same / n:.0%} with the same; {alone}",
            kappas,
        )


def read_labels(path: Path, shown: str) -> tuple[dict[Pair, int], tuple[Rejected, ...]]:
    """The ratings of a file, and the lines that were not taken; of a citation the first label counts.

    Raises:
        ConversionError: the file cannot be read, or has no label.
    """
    errors: list[ConversionError] = []
    ratings: dict[Pair, int] = {}
    for row in read_support_labels(path, errors.append):
        if ratings.setdefault((row.run, row.query_id, row.place, row.doc_id), row.rating) != row.rating:
            errors.append(ConversionError(path, row.line, "another label of this citation stands above"))
    if not ratings:
        raise errors[0] if errors else ConversionError(path, None, "no label in it")
    return ratings, tuple(Rejected(shown, error.line, error.reason, error.lost) for error in errors)


def with_labels(cells: SupportCells, ratings: Mapping[Pair, int]) -> SupportCells:
    """The same cells with these labels in place of stored ones, whether their passages have texts or not.

    Raises:
        TrecexamError: none of them is of a citation that is looked at.
    """
    codes = tuple(
        tuple(ratings.get((*_key(cells, place), doc_id), MISSING) for doc_id in statement.doc_ids)
        for place, statement in enumerate(cells.statements)
    )
    if all(code == MISSING for of_statement in codes for code in of_statement):
        raise TrecexamError("none of the file's labels is of a citation here: compare runs and query ids")
    return replace(cells, machine=codes, human={})


def compare_labels(cells: SupportCells, ratings: Mapping[Pair, int]) -> SupportAgreement:
    """The labels of the cells by those of a file."""
    ours = {
        (*_key(cells, place), doc_id): code
        for place, statement in enumerate(cells.statements)
        for doc_id, code in zip(statement.doc_ids, cells.codes[place], strict=True)
        if code >= 0
    }
    return _compared(ours, ratings, lambda pair: pair[1])


def compare_people(cells: SupportCells) -> SupportAgreement:
    """The grader's labels by people's, of each sentence with a passage once, whichever responses have both.

    Raises:
        TrecexamError: no person labelled any.
    """
    if not cells.human:
        raise TrecexamError("no person labelled a citation; `trecexam override --sentence` and `serve` do")
    ours = {pair.key: pair.machine for pair in cells.pairs if pair.machine >= 0}
    people = {pair.key: pair.code for pair in cells.pairs if pair.key in cells.human}
    compared = _compared(ours, people, lambda key: key[0])
    return replace(compared, ours="of the grader", theirs="people")


def _compared(
    ours: Mapping[K, int], ratings: Mapping[K, int], query_of: Callable[[K], str]
) -> SupportAgreement:
    both = ours.keys() & ratings.keys()
    row_of = {query_id: row for row, query_id in enumerate(sorted({query_of(key) for key in both}))}
    counts = np.zeros((len(row_of), len(LABELS), len(LABELS)), np.int64)
    for (query_id, label, other), count in Counter(
        (query_of(key), ours[key], ratings[key]) for key in both
    ).items():
        counts[row_of[query_id], label, other] = count
    agreed = kappa(counts) if both else Kappa()
    return SupportAgreement(
        counts, agreed, weighted_kappa(counts.sum(axis=0), 1), len(ours) - len(both), len(ratings) - len(both)
    )


def _key(cells: SupportCells, place: int) -> tuple[str, str, int]:
    statement = cells.statements[place]
    return statement.run, statement.query_id, statement.place
