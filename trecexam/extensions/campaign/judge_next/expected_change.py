"""Expected change of the differences between runs by a person's judgment of a passage.

Selection of passages by differences of systems follows Carterette, Allan & Sitaraman, "Minimal Test
Collections for Retrieval Evaluation", SIGIR 2006. The paper uses a document's weight in the difference of two
systems' average precision; here, the measure is recomputed for all pairs of runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from ir_measures import Measure
from numpy.typing import NDArray

from converters.arrow import strings
from trecexam.scores.columns.evaluator import Evaluator
from trecexam.scores.columns.judged import UNJUDGED, Judged
from trecexam.scores.columns.ranked import run_of
from trecexam.scores.ratings import MAX_RATING, MISSING, QueryRatings

#: The number of ratings: 0..5.
RATINGS = MAX_RATING + 1
#: Number of (label, passage) rows per evaluation: about 50 MB.
_ROWS = 200_000

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def expected_change(
    q: QueryRatings,
    alike: Ints,
    selected: NDArray[np.bool_],
    rankings: Sequence[Sequence[str]],
    weights: Floats,
    measure: Measure,
    label_of: Callable[[QueryRatings], Mapping[str, int]],
) -> tuple[Ints, Floats]:
    """Return the passages' labels, -1 if missing, and the expected change by judging each passage alone.

    Let P(r) be the probability of rating r, and m(r) the runs' means after this judgment:

        change = sum over r of P(r) * mean over pairs of runs of |(m_a(r) - m_b(r)) - (m_a - m_b)|

    P(r) is the share of r in the passage's ratings on the query's items, a rule, not a model of people.

    Args:
        alike: an index of each passage's text; a judgment counts for all passages with the same index.
        selected: mask of passages to consider; other passages have change 0.
        rankings: each run's doc_ids for the query, best first.
        weights: weight of the query in each run's mean.
    """

    def labels(ratings: QueryRatings) -> Ints:
        label = label_of(ratings)
        return np.array([label.get(doc_id, MISSING) for doc_id in q.doc_ids], np.int64)

    counts = (q.ratings[..., None] == np.arange(RATINGS)).sum(axis=1)
    chances = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    now = labels(q)
    after = np.stack(
        [labels(replace(q, human=dict.fromkeys(q.doc_ids, rating))) for rating in range(RATINGS)], axis=1
    )
    docs, ratings = np.nonzero((after != now[:, None]) & (chances > 0) & selected[:, None])
    # Ratings with the same label are evaluated once.
    outcomes, of_try = np.unique(np.stack([docs, after[docs, ratings]]), axis=1, return_inverse=True)
    labellings = [(np.flatnonzero(alike == alike[doc]).tolist(), label) for doc, label in outcomes.T.tolist()]
    changes = _changes(q.doc_ids, now, labellings, rankings, weights, measure)
    expected = chances[docs, ratings] * changes[of_try.ravel()]
    change: Floats = np.bincount(docs, expected, len(now)).astype(np.float64)
    return now, change


def _changes(
    doc_ids: Sequence[str],
    now: Ints,
    labellings: Sequence[tuple[Sequence[int], int]],
    rankings: Sequence[Sequence[str]],
    weights: Floats,
    measure: Measure,
) -> Floats:
    """Return the mean absolute change of two runs' difference for each changed label of some passages."""
    # judged_only skips unjudged passages before it counts.
    depth = None if measure.params.get("judged_only") else measure.params.get("cutoff")
    cut = [tuple(ranking[:depth]) for ranking in rankings]
    # Runs of one group often agree on a query.
    different = {ranking: index for index, ranking in enumerate(dict.fromkeys(cut))}
    of_run, n_runs = [different[ranking] for ranking in cut], len(cut)
    labels = np.where(now >= 0, now, UNJUDGED).astype(np.int32)
    # Sum of all pairs' differences of sorted numbers.
    pairs = (2 * np.arange(n_runs) - n_runs + 1) / (n_runs * (n_runs - 1) / 2)
    changes = np.zeros(len(labellings))
    step = max(1, _ROWS // max(1, len(doc_ids) + max(map(len, different))))
    for start in range(0, len(labellings), step):
        part = labellings[start : start + step]
        # The current labels, then each changed labelling as a separate query.
        changed = np.repeat(labels[None], 1 + len(part), axis=0)
        for row, (docs, label) in zip(changed[1:], part, strict=True):
            row[docs] = label
        query_ids = tuple(map(str, range(len(changed))))
        offsets = np.arange(len(changed) + 1, dtype=np.int64) * len(doc_ids)
        judged = Judged(query_ids, offsets, strings([*doc_ids] * len(changed)), changed.ravel())
        evaluator = Evaluator([measure], judged)
        by_ranking = [evaluator.values(run_of(dict.fromkeys(query_ids, ranking))) for ranking in different]
        values = np.concatenate(by_ranking, axis=1)
        moved = (values[1:] - values[0])[:, of_run] * weights
        changes[start : start + step] = np.sort(moved, axis=1) @ pairs
    return changes
