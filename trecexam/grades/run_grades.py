"""The runs of a track in its pool: how many of each run's cells have a grade."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from trecexam.files.cache import memoized
from trecexam.grades.cited import NO_TEXT, cited_statements
from trecexam.grades.graded_track import GradedTrack


@memoized
def _cells_of_runs(track: GradedTrack) -> NDArray[np.int64]:
    """Count each run's cells, or citations: rated ones, all with a text, and those without; (runs, 3)."""
    total = np.zeros((len(track.runs), 3), np.int64)
    if track.asked.citing is not None:
        row_of = {run: row for row, run in enumerate(track.runs)}
        for run, _, cited in cited_statements(track, track.runs, track.bank.query_ids):
            codes = [code for each in cited for code in each.codes]
            no_text = codes.count(NO_TEXT)
            total[row_of[run]] += (sum(code >= 0 for code in codes), len(codes) - no_text, no_text)
        return total
    for query_id, sheet in track.sheets.items():
        shape = len(sheet.doc_ids), len(sheet.items)
        rated, has_text = sheet.rated.reshape(shape), sheet.gradable.reshape(shape)
        counts = [cells.sum(axis=1) for cells in (rated, rated | has_text, ~(rated | has_text))]
        # The last one is for rank -1.
        by_passage = np.vstack([np.stack(counts, axis=1), np.zeros((1, 3), np.int64)])
        total += by_passage[track.pool[query_id].ranks].sum(axis=1)
    return total


def runs_without_score(track: GradedTrack) -> frozenset[str]:
    """Return the runs of which no passage has a grade. Zeros would say that they found nothing good.

    A run that has nothing to grade (it answers no query) has its zeros, unless nothing at all is graded.
    """
    if not track.counts.is_graded:
        return frozenset(track.runs)
    rated, cells, without_text = _cells_of_runs(track).T
    ungraded = list(compress(track.runs, (rated == 0) & (cells + without_text > 0)))
    if not ungraded or track.asked.citing is not None:
        return frozenset(ungraded)
    # Measures may look deeper than the pool: what is graded there is in the pool by another run.
    graded = {
        query_id: {sheet.doc_ids[row] for row in np.unique(sheet.where(sheet.rated)[0]).tolist()}
        for query_id, sheet in track.sheets.items()
    }
    return frozenset(
        run
        for run in ungraded
        if all(ids.isdisjoint(track.runs[run].ranking(query_id)) for query_id, ids in graded.items())
    )


def partly_graded(track: GradedTrack) -> Mapping[str, tuple[int, int]]:
    """Return by run (cells with a grade, cells) where some with a text have none.

    None of qrels that are grades: `without_label` says how many passages have no label.
    """
    if track.grader.known_passages is not None or not track.counts.is_graded:
        return {}
    counts = zip(track.runs, _cells_of_runs(track).tolist(), strict=True)
    return {run: (rated, cells) for run, (rated, cells, _) in counts if rated < cells}
