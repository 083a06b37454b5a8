"""Labels of support of a file, or of people, beside the grader's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from converters.errors import ConversionError
from converters.support_labels import LABELS, read_support_labels
from trecexam.errors import TrecexamError
from trecexam.files.stamps import Rejected
from trecexam.line.cited import cited_statements, responses_by_query
from trecexam.scores.kappa import Kappa, kappa, weighted_kappa
from trecexam.tables.table import Table
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment

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


def compare_labels(track: Assessment, ratings: Mapping[Pair, int]) -> SupportAgreement:
    """The labels of a track by those of a file."""
    cited, ours = cited_statements(track), dict[Pair, int]()
    for _, given in responses_by_query(track, track.responses, track.bank.query_ids):
        for run, response in given:
            for statement, codes, *_ in cited(run, response):
                key = run, statement.query_id, statement.place
                labels = zip(statement.doc_ids, codes, strict=True)
                ours.update(((*key, doc_id), code) for doc_id, code in labels if code >= 0)
    return _compared(ours, ratings, lambda pair: pair[1])


def compare_people(track: Assessment) -> SupportAgreement:
    """The grader's labels by people's, of each sentence with a passage once, whichever responses have both.

    Raises:
        TrecexamError: no person labelled any.
    """
    if not track.overrides.ratings:
        raise TrecexamError("no person labelled a citation; `trecexam override` and `serve` do")
    ours: dict[tuple[str, str, str], int] = {}
    people: dict[tuple[str, str, str], int] = {}
    for query_id, sheet in track.sheets.items():
        rows, columns = sheet.where(sheet.flat() >= 0)
        cells = zip(rows.tolist(), columns.tolist(), sheet.flat()[sheet.flat() >= 0].tolist(), strict=True)
        # Passages with the same text are one.
        ours.update(
            ((query_id, sheet.texts[row] or "", sheet.items[column].item_id), code)
            for row, column, code in cells
        )
        for (doc_id, item_id), rating in (sheet.overrides.cells if sheet.overrides else {}).items():
            people[query_id, sheet.text_of(doc_id) or f"\0{doc_id}", item_id] = rating
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
