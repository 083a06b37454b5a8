"""Compares the grader's support labels with those of people or a file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from converters.errors import ConversionError
from converters.support_labels import LABELS, read_support_labels
from trecexam.errors import TrecexamError
from trecexam.extensions.support.support import of_citations, refused_runs
from trecexam.files.stamps import Rejected
from trecexam.line.cited import cited_statements, responses_by_query
from trecexam.line.rejected import rejected_notes
from trecexam.scores.raters import Labels, RatedTwice, RaterAgreement, labels_of_both, rater_agreement
from trecexam.tables.result import Result
from trecexam.tables.table import Table
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment

#: The labels of one source: query_id -> (run, place of the sentence, doc_id) -> label.
Ratings = dict[str, dict[tuple[str, int, str], int]]
#: In place of a file of labels: those of people.
PEOPLE = "people"


@dataclass(frozen=True)
class SupportAgreement(Result):
    """Two sources of labels of the same citations: the table `labels` has one by the other.

    Attributes:
        rated: what both of them labelled.
        found: how far they agree, with an interval that keeps a query's citations together.
        other: what the second source is called.
        rejected: lines of its file.
        notes: these, and what it comes to.
    """

    rated: RatedTwice
    found: RaterAgreement
    other: str
    rejected: tuple[Rejected, ...] = ()
    notes: tuple[str, ...] = ()

    def declare(self) -> dict[str, Table]:
        """The confusion matrix of both labels, summed over queries."""
        counts = self.rated.table(len(LABELS)).tolist()
        rows = tuple((name, *row) for name, row in zip(LABELS, counts, strict=True))
        return {"labels": Table(("label", *(f"{self.other}: {name}" for name in LABELS)), rows)}

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


@of_citations
def support_agreement(track: Assessment, against: Path | str = PEOPLE) -> SupportAgreement:
    """Agreement of citation labels with those of people or a file.

    Args:
        against: a file of labels, as out/support.tsv, to compare the track's labels with; "people" for
            people's, which are compared with the grader's.

    Raises:
        TrecexamError: the grader grades something else, there are no responses, or no person labelled any.
        ConversionError: the file of labels cannot be read.
    """
    rejected = refused_runs(track)
    if against == PEOPLE:
        return _compared(*_with_people(track), PEOPLE, rejected)
    theirs, lines = _read_labels(Path(against), track.folder.shown(Path(against)))
    return _compared(_of_track(track), theirs, "file", (*rejected, *lines))


def _read_labels(path: Path, display_name: str) -> tuple[Ratings, tuple[Rejected, ...]]:
    """The ratings in a file, and rejected lines; a citation's first label counts."""
    errors: list[ConversionError] = []
    ratings: Ratings = {}
    for row in read_support_labels(path, errors.append):
        query_labels = ratings.setdefault(row.query_id, {})
        if query_labels.setdefault((row.run, row.place, row.doc_id), row.rating) != row.rating:
            errors.append(ConversionError(path, row.line, "this citation has another label above"))
    if not ratings:
        raise errors[0] if errors else ConversionError(path, None, "the file has no labels")
    return ratings, tuple(Rejected(display_name, error.line, error.reason, error.lost) for error in errors)


def _of_track(track: Assessment) -> Ratings:
    """The labels of a track, with people's in place of the grader's."""
    cited, ours = cited_statements(track), Ratings()
    for query_id, query_responses in responses_by_query(track, track.responses, track.bank.query_ids):
        for run, response in query_responses:
            for statement, codes, *_ in cited(run, response):
                labels = zip(statement.doc_ids, codes, strict=True)
                ours.setdefault(query_id, {}).update(
                    ((run, statement.place, doc_id), code) for doc_id, code in labels if code >= 0
                )
    return ours


def _with_people(track: Assessment) -> tuple[Labels, Labels]:
    """The grader's and people's labels, once per sentence and passage."""
    if not track.overrides.ratings:
        raise TrecexamError("no person labelled a citation yet: use `trecexam override` or `trecexam serve`")
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
    return ours, people


def _compared(ours: Labels, theirs: Labels, other: str, rejected: tuple[Rejected, ...]) -> SupportAgreement:
    rated = labels_of_both(ours, theirs)
    agreement = rater_agreement(rated, graded=True)
    notes = (*rejected_notes(rejected), *_lines(agreement, other))
    return SupportAgreement(rated, agreement, other, rejected, notes)


def _lines(agreement: RaterAgreement, other: str) -> Iterator[str]:
    """Notes: agreement and kappa."""
    ours, theirs = ("of the grader", PEOPLE) if other == PEOPLE else ("of the track", "the file")
    alone = (
        f"{agreement.first_only:,} have only a label {ours}, {agreement.second_only:,} only one of {theirs}"
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
