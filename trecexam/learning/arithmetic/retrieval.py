"""How the runs of a track retrieve its passages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trecexam.learning.arithmetic.features import Floats
from trecexam.learning.arithmetic.learning import Learned, predict
from trecexam.learning.arithmetic.pooled import PooledQueryToLearn


def retrieval(learned: Learned, queries: Sequence[PooledQueryToLearn]) -> tuple[Floats, ...]:
    """Of each query's passages with a text, by how many runs and by how good ones they are retrieved.

    A run votes 1 / log2(rank + 1) for each passage that it has. The first column is log(1 + the sum of
    votes): where only the most retrieved passages are judged, the others lie far from these, and a line in
    the sum itself leads too low. The second is the sum of votes, each times how good its run is: the mean
    gain of what it has, weighted by its votes, standardised over the runs. Aslam, Pavlu & Savell ("A unified
    model for metasearch, pooling, and system evaluation", CIKM 2003) weigh votes so.

    Returns:
        Shape (passages with a text, 2) each; over all of them each column has mean 0 and deviation 1.
    """
    votes = [_votes(query) for query in queries]
    gained = np.zeros(len(queries[0].ranks))
    for query, of_query in zip(queries, votes, strict=True):
        gained += predict(learned, query.passages).gains @ of_query
    total = np.sum([of_query.sum(axis=0) for of_query in votes], axis=0)
    means = gained / np.where(total, total, 1)
    quality = (means - means.mean()) / (means.std() or 1) if len(means) else means
    columns = [np.column_stack([np.log1p(of_query.sum(axis=1)), of_query @ quality]) for of_query in votes]
    every = np.vstack(columns)
    center, spread = every.mean(axis=0), every.std(axis=0)
    return tuple((of_query - center) / np.where(spread, spread, 1) for of_query in columns)


def _votes(query: PooledQueryToLearn) -> Floats:
    """Shape (passages with a text, runs)."""
    votes = np.zeros((len(query.doc_ids) + 1, len(query.ranks)))
    weights = 1 / np.log2(np.arange(query.ranks.shape[1]) + 2)
    for run, ranked in enumerate(query.ranks):
        # A rank without a passage, -1, falls into the last row.
        votes[ranked, run] = weights
    return np.asarray(votes[query.rows])
