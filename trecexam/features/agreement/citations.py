"""Agreement of a support grader's labels of citations with people's."""

from __future__ import annotations

import math
from collections.abc import Sequence

from converters.support_labels import LABELS
from trecexam.errors import TrecexamError, quoted
from trecexam.features.agreement.agreement import Agreements, agreements
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.result import Tables
from trecexam.results.table import Table
from trecexam.results.text import plural
from trecexam.scores.kappa import labels_of_both, rater_agreement


def agreement(
    track: GradedTrack, min_ratings: Sequence[int], min_answers: Sequence[int], min_relevant: int | None
) -> Agreements | Tables:
    """Return the agreement of labels of passages, see `agreements`, or of a support grader's labels."""
    if track.asked.citing is None:
        return agreements(track, min_ratings, min_answers, min_relevant)
    if min_ratings or min_answers or min_relevant:
        raise TrecexamError(f"the grader {track.name} labels citations: give no thresholds")
    return _citation_agreement(track)


def _citation_agreement(track: GradedTrack) -> Tables:
    """Compare the grader's labels of citations with people's, once per sentence and passage.

    The table `labels` has the confusion matrix, summed over queries; the interval of kappa keeps a query's
    citations together.
    """
    if not track.overrides.ratings:
        root = quoted(track.folder.root)
        raise TrecexamError(
            f"no person labelled a citation yet: `trecexam serve {root}`, or `trecexam override {root} "
            f"--grader {track.name} --query QUERY_ID --doc DOC_ID --item RUN:N --rating partial --who NAME "
            "--why TEXT`"
        )
    ours: dict[str, dict[tuple[str, str], int]] = {}
    people: dict[str, dict[tuple[str, str], int]] = {}
    for query_id, sheet in track.sheets.items():
        rated = sheet.flat() >= 0
        cells = zip(*sheet.where(rated), sheet.flat()[rated].tolist(), strict=True)
        # Passages with the same text count once.
        ours[query_id] = {
            (sheet.texts[row] or "", sheet.items[column].item_id): code for row, column, code in cells
        }
        people[query_id] = {
            (sheet.text_of(doc_id) or f"\0{doc_id}", item_id): rating
            for (doc_id, item_id), rating in (sheet.overrides.cells if sheet.overrides else {}).items()
        }
    rated_twice = labels_of_both(ours, people)
    both = rater_agreement(rated_twice, graded=True)
    kappa = both.kappa
    counts = rated_twice.counts(len(LABELS), len(LABELS)).sum(axis=0).tolist()
    rows = tuple((name, *row) for name, row in zip(LABELS, counts, strict=True))
    alone = f"{both.first_only:,} have only a label of the grader, {both.second_only:,} only one of people"
    notes = [f"no citation has both labels; {alone}"]
    if both.n:
        citations, ends = plural(both.n, "citation"), ""
        if not math.isnan(kappa.low):
            ends = f" (95% interval {kappa.low:.2f} to {kappa.high:.2f})"
        agreed = f"Cohen's kappa {kappa.value:.2f}{ends}, with linear weights {both.linear:.2f}"
        if math.isnan(kappa.value):
            agreed = "Cohen's kappa is not defined: all labels are the same"
        notes = [f"{citations} with both labels, {both.agreement:.0%} with the same; {alone}", agreed]
    return Tables(
        {"labels": Table(("label", *(f"people: {name}" for name in LABELS)), rows)},
        tuple(notes),
        about={
            "n": both.n,
            "first_only": both.first_only,
            "second_only": both.second_only,
            "agreement": both.agreement,
            "kappa": kappa.value,
            "kappa.low": kappa.low,
            "kappa.high": kappa.high,
            "kappa_linear": both.linear,
        },
    )
