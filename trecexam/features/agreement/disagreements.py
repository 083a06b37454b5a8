"""Passages that the grader and the official judgments disagree on, in the report."""

from __future__ import annotations

from dataclasses import replace

from trecexam.grades.graded_track import GradedTrack, with_texts
from trecexam.grades.official import relevance_thresholds, track_judgments
from trecexam.results.page.page import Page
from trecexam.results.result import Tables
from trecexam.results.table import Table
from trecexam.results.text import plural
from trecexam.scores.labels import labels

#: Disagreements that the report shows.
_SHOWN = 10


def add_disagreements(page: Page, track: GradedTrack, n_both: int) -> None:
    """Add the texts and labels of the widest disagreements to a page.

    Args:
        n_both: Passages that have both a label and a judgment.
    """
    apart, heading = _disagreements(track), "Disagreements"
    if not apart.rows:
        why = "The grader and the judgments find the same passages relevant."
        page.add("official", heading=heading, why=why)
        return
    which = f"These {_SHOWN} are furthest apart" if len(apart) > _SHOWN else "Those furthest apart come first"
    lead = (
        f"The grader and the judgments disagree on {len(apart):,} of {plural(n_both, 'passage')}: "
        f"{relevance_thresholds(track).in_words}. {which}."
    )
    first = with_texts(track, replace(apart, rows=apart.rows[:_SHOWN]))
    page.add("official", Tables({"disagreements": first}), heading=heading, lead=lead)


def _disagreements(track: GradedTrack) -> Table:
    """List the passages that one side alone finds relevant, those furthest apart first.

    Labels are the grader's own. A label and a judgment are apart by the difference of their distances from
    the thresholds of `relevance_thresholds`.
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
