"""How far a ranked list's score tells how good the whole RAG system's answer is, query by query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class QueryCorrelation(NamedTuple):
    """Rank correlation over queries; None where it is undefined, and then `reason` says why."""

    n_queries: int
    kendall_tau: float | None
    spearman_rho: float | None
    reason: str = ""


def query_correlation(retrieval: Mapping[str, float], end_to_end: Mapping[str, float]) -> QueryCorrelation:
    """Kendall's tau-b and Spearman's rho over the queries that both have.

    This is the table of Salemi and Zamani (SIGIR 2024), section 4: a retriever's eRAG score against the
    score of the system's answer from the whole list.

    Args:
        retrieval, end_to_end: query_id -> score, finite.
    """
    from scipy.stats import kendalltau, spearmanr

    common = sorted(retrieval.keys() & end_to_end.keys())
    ours, theirs = ([side[query_id] for query_id in common] for side in (retrieval, end_to_end))
    if len(common) < 2:
        return QueryCorrelation(len(common), None, None, "fewer than two queries have both scores")
    for side, what in ((ours, "this measure"), (theirs, "the end-to-end score")):
        if len(set(side)) == 1:
            return QueryCorrelation(len(common), None, None, f"{what} is {side[0]:g} for every query")
    tau, rho = float(kendalltau(ours, theirs).statistic), float(spearmanr(ours, theirs).statistic)
    return QueryCorrelation(len(common), tau, rho)
