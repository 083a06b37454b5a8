"""How the runs of a track retrieve its passages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trecexam.extensions.learn.arithmetic.features import Floats
from trecexam.extensions.learn.arithmetic.learning import Learned, predict
from trecexam.extensions.learn.arithmetic.pooled import PooledQueryToLearn


def retrieval(learned: Learned, queries: Sequence[PooledQueryToLearn]) -> tuple[Floats, ...]:
    """Of each query's passages with a text, by how many runs and by how good ones they are retrieved.

    A run votes 1 / log2(rank + 1) for each passage that it has. The first column is log(1 + the sum of
    votes): where only the most retrieved passages are judged, the others lie far from these, and a line in
    the sum itself leads too low. The second is the sum of votes, each times how good its run is: the mean
    gain of what it has, weighted by its votes, standardised over the runs. Aslam, Pavlu & Savell ("A unified
    model for metasearch, pooling, and system evaluation", CIKM 2003) weigh votes so.

    Where the unjudged are retrieved as the judged are, the third column is the sum of votes: relevance rises
    faster at its upper end than its logarithm. Where they lie below the judged, as with the most retrieved
    judged alone, a bent line would lead anywhere, and there is none.

    Returns:
        Shape (passages with a text, 2 or 3) each; over all of them each column has mean 0 and deviation 1.
    """
    votes = [_votes(query) for query in queries]
    gained = np.zeros(len(queries[0].ranks))
    for query, of_query in zip(queries, votes, strict=True):
        gained += predict(learned, query.passages).gains @ of_query
    total = np.sum([of_query.sum(axis=0) for of_query in votes], axis=0)
    means = gained / np.where(total, total, 1)
    quality = (means - means.mean()) / (means.std() or 1) if len(means) else means
    summed = [of_query.sum(axis=1) for of_query in votes]
    columns = [
        np.column_stack([np.log1p(of_sum), of_query @ quality, of_sum])
        for of_sum, of_query in zip(summed, votes, strict=True)
    ]
    if not retrieved_alike(queries):
        columns = [of_query[:, :2] for of_query in columns]
    every = np.vstack(columns)
    center, spread = every.mean(axis=0), every.std(axis=0)
    return tuple((of_query - center) / np.where(spread, spread, 1) for of_query in columns)


def retrieved_alike(queries: Sequence[PooledQueryToLearn]) -> bool:
    """Whether most unjudged passages have at least the votes that all but 5% of the judged ones have.

    It is so where judged passages were drawn at random, or nothing is unjudged; it is not where the most
    retrieved are judged, and what is learned of them must be carried on to passages unlike them.
    """
    votes = np.concatenate([_votes(query).sum(axis=1) for query in queries])
    known = ~np.isnan(np.concatenate([query.passages.judgments for query in queries]))
    if known.all() or not known.any():
        return bool(known.all())
    return bool(np.mean(votes[~known] >= np.quantile(votes[known], 0.05)) > 0.5)


def _votes(query: PooledQueryToLearn) -> Floats:
    """Shape (passages with a text, runs)."""
    votes = np.zeros((len(query.doc_ids) + 1, len(query.ranks)))
    weights = 1 / np.log2(np.arange(query.ranks.shape[1]) + 2)
    for run, ranked in enumerate(query.ranks):
        # A rank without a passage, -1, falls into the last row.
        votes[ranked, run] = weights
    return np.asarray(votes[query.rows])
