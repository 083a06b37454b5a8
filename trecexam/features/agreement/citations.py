"""Agreement of a support grader's labels of citations with people's."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from converters.support_labels import LABELS
from trecexam.errors import TrecexamError, quoted
from trecexam.scores.raters import RatedTwice, RaterAgreement, labels_of_both, rater_agreement
from trecexam.tables.result import Result
from trecexam.tables.table import Table
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment


@dataclass(frozen=True)
class CitationAgreement(Result):
    """The grader's and people's labels of the same citations: the table `labels` has one by the other.

    Attributes:
        rated: the citations with both labels.
        found: how far they agree, with an interval that keeps a query's citations together.
        notes: the same in words.
    """

    rated: RatedTwice
    found: RaterAgreement
    notes: tuple[str, ...] = ()

    def _declare(self) -> dict[str, Table]:
        """The confusion matrix of both labels, summed over queries."""
        counts = self.rated.table(len(LABELS)).tolist()
        rows = tuple((name, *row) for name, row in zip(LABELS, counts, strict=True))
        return {"labels": Table(("label", *(f"people: {name}" for name in LABELS)), rows)}

    @property
    def facts(self) -> dict[str, Any]:
        """Counts of citations with both labels and only one, agreement, and kappas."""
        agreement, kappa = self.found, self.found.kappa
        return {
            "n": agreement.n,
            "first_only": agreement.first_only,
            "second_only": agreement.second_only,
            "agreement": agreement.agreement,
            "kappa": kappa.value,
            "kappa.low": kappa.low,
            "kappa.high": kappa.high,
            "kappa_linear": agreement.linear,
        }


def _how_to_label(track: Assessment) -> str:
    """Say what to type to label citations; the first one is the example."""
    ways = [f"trecexam serve {quoted(track.folder.root)}"]
    for query_id, sheet in track.sheets.items():
        rows, columns = sheet.where(sheet.flat() >= 0)
        if len(rows):
            words = ["trecexam", "override", str(track.folder.root)]
            words += ["--grader", track.name] if track.folder.is_one_of_several else []
            words += ["--query", query_id, "--doc", sheet.doc_ids[rows[0]]]
            words += ["--item", sheet.items[columns[0]].item_id, "--rating", "partial", "--who", "NAME"]
            ways.append(shlex.join([*words, "--why", "TEXT"]))
            break
    return ", or ".join(f"`{way}`" for way in ways)


def citation_agreement(track: Assessment) -> CitationAgreement:
    """Compare the grader's labels of citations with people's, once per sentence and passage.

    Raises:
        TrecexamError: no person labelled a citation.
    """
    if not track.overrides.ratings:
        raise TrecexamError(f"no person labelled a citation yet: {_how_to_label(track)}")
    ours: dict[str, dict[tuple[str, str], int]] = {}
    people: dict[str, dict[tuple[str, str], int]] = {}
    for query_id, sheet in track.sheets.items():
        rated = sheet.flat() >= 0
        cells = zip(*sheet.where(rated), sheet.flat()[rated].tolist(), strict=True)
        # Passages with the same text are one.
        ours[query_id] = {
            (sheet.texts[row] or "", sheet.items[column].item_id): code for row, column, code in cells
        }
        people[query_id] = {
            (sheet.text_of(doc_id) or f"\0{doc_id}", item_id): rating
            for (doc_id, item_id), rating in (sheet.overrides.cells if sheet.overrides else {}).items()
        }
    rated_twice = labels_of_both(ours, people)
    agreement = rater_agreement(rated_twice, graded=True)
    return CitationAgreement(rated_twice, agreement, tuple(_lines(agreement)))


def _lines(agreement: RaterAgreement) -> Iterator[str]:
    """Notes: agreement and kappa."""
    alone = (
        f"{agreement.first_only:,} have only a label of the grader, "
        f"{agreement.second_only:,} only one of people"
    )
    if not agreement.n:
        yield f"no citation has both labels; {alone}"
        return
    both = plural(agreement.n, "citation")
    yield f"{both} with both labels, {agreement.agreement:.0%} with the same; {alone}"
    kappa = agreement.kappa
    if math.isnan(kappa.value):
        yield "Cohen's kappa is not defined: all labels are the same"
        return
    ends = "" if math.isnan(kappa.low) else f" (95% interval {kappa.low:.2f} to {kappa.high:.2f})"
    yield f"Cohen's kappa {kappa.value:.2f}{ends}, with linear weights {agreement.linear:.2f}"
