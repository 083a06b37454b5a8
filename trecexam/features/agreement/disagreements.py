"""Passages that the grader and the official judgments disagree on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trecexam.line.official import track_judgments
from trecexam.line.relevance import relevance_thresholds
from trecexam.scores.labels import labels
from trecexam.tables.table import Table

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment


def disagreements(track: Assessment) -> Table:
    """List the passages that one side alone finds relevant, those furthest apart first.

    Labels are the grader's own. A label and a judgment are apart by the difference of their distances from
    the thresholds of `relevance_thresholds`.

    Raises:
        TrecexamError: the official judgments cannot be read.
    """
    at, judged = relevance_thresholds(track), track_judgments(track).judged
    least = at.min_answers if at.rule == "count" else at.min_rating
    rows = []
    for q in track.ratings(human=False):
        label_by_doc = labels(q, at.rule, at.min_rating, at.min_answers)
        for doc_id, judgment in judged.get(q.query_id, {}).items():
            label = label_by_doc.get(doc_id)
            if label is not None and (label >= least) != (judgment >= at.min_relevant):
                gap = abs((judgment - at.min_relevant) - (label - least))
                rows.append((-gap, q.query_id, doc_id, label, judgment))
    header = ("query_id", "doc_id", "label", "judged")
    return Table(header, tuple(row[1:] for row in sorted(rows)))
