"""A run joined with judgments: the judged passages and their ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from converters.arrow import numbers, strings
from converters.run import Run
from trecexam.scores.columns.judged import UNJUDGED, Judged

#: The rank that stands where a query has no further hit; below every cutoff's reach.
NO_RANK = int(np.iinfo(np.int32).max)


@dataclass(frozen=True, eq=False)
class Ranked:
    """The judged passage at each query's ranks.

    Attributes:
        offsets: int64, queries + 1: the ranks of query i are offsets[i]:offsets[i + 1].
        rows: int32, for each rank, best first, the passage's row in the judgments, or -1.
        n_retrieved: int64, how many entries the run has for each query, also beyond the depth of the join.
    """

    offsets: NDArray[np.int64]
    rows: NDArray[np.int32]
    n_retrieved: NDArray[np.int64]


def rows_at_ranks(run: Run, judged: Judged, depth: int | None = None) -> Ranked:
    """Return the row of `judged` at the first `depth` ranks of each query; None for all.

    pyarrow's `index_in`, query by query, took 8 ms for the first 20 of 300 x 1000 ranks against 300 x 250
    passages and 15 ms for all; Python dicts took 46, a sorted array of 64-bit hashes 80 and more.
    """
    query_index = {query_id: i for i, query_id in enumerate(run.query_ids)}
    offsets_of_run, doc_ids = (run.offsets, run.doc_ids) if depth is None else run.top(depth)
    bounds, starts = offsets_of_run.tolist(), judged.offsets.tolist()
    n_entries = np.diff(run.offsets).tolist()
    doc_ids = doc_ids if doc_ids.type == pa.large_string() else doc_ids.cast(pa.large_string())
    index_in = pc.get_function("index_in")
    pieces = []
    lengths = np.zeros(len(judged.query_ids), np.int64)
    retrieved = np.zeros(len(judged.query_ids), np.int64)
    for i, query_id in enumerate(judged.query_ids):
        at = query_index.get(query_id)
        if at is None:
            continue
        retrieved[i], lengths[i] = n_entries[at], bounds[at + 1] - bounds[at]
        pieces.append(index_in.call([doc_ids.slice(bounds[at], int(lengths[i]))], judged.lookups[i]))
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    if not pieces:
        return Ranked(offsets, np.empty(0, np.int32), retrieved)
    rows = numbers(pa.concat_arrays(pieces))
    rows = np.where(rows >= 0, rows + np.repeat(np.array(starts[:-1], np.int32), lengths), np.int32(-1))
    return Ranked(offsets, rows.astype(np.int32, copy=False), retrieved)


def run_of(rankings: Mapping[str, Sequence[str]]) -> Run:
    """Return a run of rankings, query_id -> distinct doc_ids, best first."""
    lengths = np.array([len(ranking) for ranking in rankings.values()], np.int64)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    doc_ids = strings([doc_id for ranking in rankings.values() for doc_id in ranking])
    return Run("", tuple(rankings), offsets, doc_ids, -np.arange(len(doc_ids), dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Hits:
    """The ranks with labelled passages; others contribute 0.

    Attributes:
        labels: int32 of shape (queries, most hits of a query), by rank; `UNJUDGED` beyond a query's hits.
        ranks: int32 of the same shape, counted from 0; `NO_RANK` beyond.
        rows: int32 of the same shape, the passages' rows in the judgments; -1 beyond.
        n_retrieved: int64, how many entries the run has for each query.
    """

    labels: NDArray[np.int32]
    ranks: NDArray[np.int32]
    rows: NDArray[np.int32]
    n_retrieved: NDArray[np.int64]
    _kept: dict[int | None, Hits] = field(default_factory=dict)

    @classmethod
    def of(cls, ranked: Ranked, judged: Judged) -> Hits:
        """The hits of a run joined with these judgments."""
        labels = judged.padded_labels[ranked.rows]
        positions = np.flatnonzero(labels != UNJUDGED)
        query = np.searchsorted(ranked.offsets, positions, side="right") - 1
        ranks = (positions - ranked.offsets[query]).astype(np.int32)
        retrieved = np.where(judged.has_labels, ranked.n_retrieved, 0)
        return _padded(query, ranks, ranked.rows[positions], labels[positions], retrieved)

    def top(self, cutoff: int | None) -> Hits:
        """The hits at the first `cutoff` ranks; all with None."""
        if cutoff is None:
            return self
        if cutoff not in self._kept:
            inside = self.ranks < cutoff
            width = int(np.count_nonzero(inside, axis=1).max(initial=0))
            inside = inside[:, :width]
            self._kept[cutoff] = Hits(
                np.where(inside, self.labels[:, :width], np.int32(UNJUDGED)),
                np.where(inside, self.ranks[:, :width], np.int32(NO_RANK)),
                np.where(inside, self.rows[:, :width], np.int32(-1)),
                self.n_retrieved,
            )
        return self._kept[cutoff]

    def judged_only(self) -> Hits:
        """The hits as if the run had only judged passages (label 0 or better), like trec_eval -J.

        The hits have to be of whole rankings. The number of entries becomes that of the judged ones.
        """
        if None not in self._kept:
            query, column = np.nonzero(self.labels >= 0)
            counts = np.bincount(query, minlength=len(self.labels)).astype(np.int64)
            starts = np.cumsum(counts) - counts
            ranks = (np.arange(len(query)) - starts[query]).astype(np.int32)
            rows, labels = self.rows[query, column], self.labels[query, column]
            self._kept[None] = _padded(query, ranks, rows, labels, counts)
        return self._kept[None]


def _padded(
    query: NDArray[np.intp],
    ranks: NDArray[np.int32],
    rows: NDArray[np.int32],
    labels: NDArray[np.int32],
    retrieved: NDArray[np.int64],
) -> Hits:
    """Hits from one entry for each, which are in the order of queries and ranks."""
    counts = np.bincount(query, minlength=len(retrieved))
    column = np.arange(len(query)) - (np.cumsum(counts) - counts)[query]
    shape = len(retrieved), int(counts.max(initial=0))
    filled: list[NDArray[np.int32]] = []
    for values, nothing in ((labels, UNJUDGED), (ranks, NO_RANK), (rows, -1)):
        matrix = np.full(shape, nothing, np.int32)
        matrix[query, column] = values
        filled.append(matrix)
    return Hits(filled[0], filled[1], filled[2], retrieved)
