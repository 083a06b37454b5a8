"""The runs of a track in its pool: how many of each run's cells have a grade, and where it has judgments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from converters.arrow import numbers, strings
from converters.run import Run
from trecexam.files.cache import memoized
from trecexam.grades.cited import NO_TEXT, cited_statements, responses_by_query
from trecexam.grades.graded_track import GradedTrack
from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.ranked import Ranked

#: Stands beyond the end of a ranking.
_NOTHING = -2


@memoized
def _cells_of_runs(track: GradedTrack) -> NDArray[np.int64]:
    """Count each run's cells, or citations: rated ones, all with a text, and those without; (runs, 3)."""
    total = np.zeros((len(track.runs), 3), np.int64)
    if track.asked.citing is not None:
        row_of, cited = {run: row for row, run in enumerate(track.runs)}, cited_statements(track)
        for _, responses in responses_by_query(track, track.runs, track.bank.query_ids):
            for run, response in responses:
                codes = np.array([code for each in cited(run, response) for code in each.codes], np.int64)
                no_text = int((codes == NO_TEXT).sum())
                total[row_of[run]] += (int((codes >= 0).sum()), len(codes) - no_text, no_text)
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


def pooled_ranks(
    track: GradedTrack, runs: Sequence[Run], judged: Judged, depth: int | None
) -> list[Ranked] | None:
    """Return these runs' joins with judgments as `rows_at_ranks`, by one join of each query's pool.

    Args:
        runs: of the track.
        depth: the first ranks that are joined; None for whole rankings.

    Returns:
        None where the pool is not that deep, or lacks queries.
    """
    longest = max((int(np.diff(run.offsets).max(initial=0)) for run in runs), default=0)
    depth = longest if depth is None else min(depth, longest)
    if depth > track.depth or not track.pool.keys() >= set(judged.query_ids):
        return None
    run_index = {run: number for number, run in enumerate(track.runs)}
    of_runs = [run_index[run.name] for run in runs]
    rows = np.full((len(runs), len(judged.query_ids), depth), _NOTHING, np.int32)
    for number, query_id in enumerate(judged.query_ids):
        pooled = track.pool[query_id]
        ranks = pooled.ranks[of_runs, :depth]
        at = pc.call_function("index_in", [strings(pooled.doc_ids)], judged.lookups[number])
        row_of = numbers(at).astype(np.int32)
        # The last one is for rank -1, beyond the end of a ranking.
        row_of = np.append(np.where(row_of >= 0, row_of + judged.offsets[number], -1), _NOTHING)
        rows[:, number, : ranks.shape[1]] = row_of[ranks]
    joins = []
    for run, of_run in zip(runs, rows, strict=True):
        has_row = of_run != _NOTHING
        offsets = np.concatenate(([0], np.cumsum(has_row.sum(axis=1)))).astype(np.int64)
        retrieved = np.array([run.count(query_id) for query_id in judged.query_ids], np.int64)
        joins.append(Ranked(offsets, of_run[has_row], retrieved))
    return joins
