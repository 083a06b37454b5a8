"""Cross-validation of methods for unjudged passages: hides half of the judgments and compares rankings.

Unjudged passages are excluded: a leaderboard that counts them as 0 would favour 0 for hidden ones.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.learn.arithmetic.learning import Learned, by_regression, fit, predict
from trecexam.extensions.learn.arithmetic.passages import FEATURES, Bools, Floats, QueryPassages
from trecexam.extensions.learn.arithmetic.regression import expected
from trecexam.extensions.learn.arithmetic.scores import drawn_ndcg
from trecexam.scores.correlation import half_width
from trecexam.scores.rank_correlation import QueryDraws, tau_b_columns

#: Of nDCG.
K = 10
#: Number of random halves to hide, one after the other.
REPEATS = 5
#: Threshold halfway between a random sample (0.5) and only the most retrieved passages (1).
_MOSTLY = 0.75
_FUSION = FEATURES.index("fusion")

Name = TypeVar("Name", bound=Hashable)
#: (queries without hidden judgments, learned model) -> gains of each query's passages; NaN leaves a passage
#: out of rankings.
Way = Callable[[Sequence[QueryPassages], Learned], Sequence[Floats]]


@dataclass(frozen=True, eq=False)
class Compared:
    """Result of a method; means over the hidden halves.

    Attributes:
        loss: distance from the right order of runs; see `compare`.
        of_subsets: losses over subsets of the queries.
        counts: hidden passages of each query by official relevance and by the method's; shape (queries, 2,
            2).
    """

    loss: float
    of_subsets: Floats
    counts: NDArray[np.int64]

    def better_than(self, other: Compared) -> bool:
        """Return True where the loss is significantly lower than another's.

        The lower end of the difference's 95% interval is above 0: Student's t, with the delete-d jackknife's
        standard error over queries.
        """
        n_queries = len(self.counts)
        if n_queries < 2:
            return False
        error = QueryDraws().standard_error(other.of_subsets - self.of_subsets, n_queries)
        return other.loss - self.loss > float(half_width(error, n_queries))


def best(compared: Mapping[Name, Compared], first: Name) -> Name:
    """Return the first method, or the significantly better method with the lowest loss."""
    better = [name for name, result in compared.items() if result.better_than(compared[first])]
    return min(better, key=lambda name: compared[name].loss, default=first)


def most_retrieved(queries: Sequence[QueryPassages]) -> bool:
    """Return True if the judged passages are the most retrieved ones, and no random sample.

    The test counts pairs of a judged and an unjudged passage of a query in which the judged one is retrieved
    more; ties count half.
    """
    from scipy.stats import rankdata

    more, pairs = 0.0, 0
    for query in queries:
        unjudged, n = ~query.judged, int((~query.judged).sum())
        # The U statistic of Mann & Whitney.
        more += float(rankdata(query.features[:, _FUSION])[unjudged].sum()) - n * (n + 1) / 2
        pairs += n * (len(unjudged) - n)
    return pairs > 0 and more / pairs >= _MOSTLY


def hidings(queries: Sequence[QueryPassages]) -> list[list[Bools]]:
    """Return the hidden half of the judgments, chosen as the judged passages were.

    If judged passages are the most retrieved ones, the less retrieved half of each query is hidden, once; the
    larger half of an uneven number stays. Else a random half is hidden, `REPEATS` times.

    Returns:
        Mask of hidden passages, for each repeat and query.
    """
    # Not seed 0, which may have drawn the judged sample itself.
    rng, by_votes = np.random.default_rng([0, 1]), most_retrieved(queries)
    repeats = []
    for _ in range(1 if by_votes else REPEATS):
        hidden = [np.zeros(len(query.doc_ids), bool) for query in queries]
        for mask, query in zip(hidden, queries, strict=True):
            rows = np.flatnonzero(query.judged)
            if by_votes:
                order = np.argsort(query.features[rows, _FUSION], kind="stable")
                mask[rows[order[(len(order) + 1) // 2 :]]] = True
            else:
                mask[rows] = rng.random(len(rows)) < 0.5
        repeats.append(hidden)
    return repeats


def compare(
    queries: Sequence[QueryPassages],
    ways: Mapping[Name, Way],
    min_relevant: float,
    other_queries: Sequence[QueryPassages] = (),
    fitted: Callable[[int, int], None] = lambda done, of: None,
) -> dict[Name, Compared]:
    """Compare all methods with half of the judgments hidden.

    If the most retrieved passages are judged, the loss of a method is its error, for the hidden
    passages among the first ten ranks of a run, in the sum of gain / log2(rank + 1) over the query's best:
    the standard deviation over the runs of the mean over the queries. An error common to all runs does not
    count. A condensed list replaces left-out passages by the mean of the rest.

    If a random sample is judged, the loss is 1 - Kendall's tau of the method's leaderboard on the known half
    with the sum of gain / log2(rank + 1) over the hidden judgments, which favours no method.

    Args:
        min_relevant: lowest relevant label.
        other_queries: queries of another track to learn from.
        fitted: called with (fits done, fits in all).

    Raises:
        ValueError: the remaining judgments are too few to learn from.
    """
    losses: dict[Name, list[Floats]] = {name: [] for name in ways}
    counts = {name: np.zeros((len(queries), 2, 2), np.int64) for name in ways}
    by_votes, repeats = most_retrieved(queries), hidings(queries)
    for number, repeat in enumerate(repeats, 1):
        seen = [query.hiding(hide) for query, hide in zip(queries, repeat, strict=True)]
        learned = fit([*other_queries, *seen])
        for name, method in ways.items():
            gains = method(seen, learned)
            losses[name].append((_errors if by_votes else _disorder)(queries, repeat, gains))
            for at, (query, of_query, hide) in enumerate(zip(queries, gains, repeat, strict=True)):
                pair = 2 * (query.judgments[hide] >= min_relevant) + (of_query[hide] >= min_relevant)
                counts[name][at] += np.bincount(pair.astype(int), minlength=4).reshape(2, 2)
        fitted(number, len(repeats))
    means = {name: np.mean(of_way, axis=0) for name, of_way in losses.items()}
    return {name: Compared(float(of_way[0]), of_way[1:], counts[name]) for name, of_way in means.items()}


def zeros(queries: Sequence[QueryPassages], _: Learned) -> list[Floats]:
    """Count unjudged passages as not relevant."""
    return [np.nan_to_num(query.judgments) for query in queries]


def condensed(queries: Sequence[QueryPassages], _: Learned) -> list[Floats]:
    """Leave unjudged passages out of rankings (Sakai, "Alternatives to Bpref", SIGIR 2007)."""
    return [query.judgments for query in queries]


def expectations(queries: Sequence[QueryPassages], learned: Learned) -> list[Floats]:
    """Return the expected labels of the learned leaderboard."""
    return [expected(by_regression(learned, query), learned.scale) for query in queries]


def labels(queries: Sequence[QueryPassages], learned: Learned) -> list[Floats]:
    """Return the labels that `fill` writes."""
    return [predict(learned, query).labels for query in queries]


def _errors(queries: Sequence[QueryPassages], hidden: Sequence[Bools], gains: Sequence[Floats]) -> Floats:
    """Return the loss if the most retrieved passages are judged, over all queries and each subset."""
    columns = []
    for query, hide, of_query in zip(queries, hidden, gains, strict=True):
        top = query.ranks[:, :K]
        discounts = 1 / np.log2(np.arange(top.shape[1]) + 2)
        labels = np.append(np.nan_to_num(query.judgments), 0)
        is_known, unknown = (np.append(mask, False)[top] for mask in (query.judged & ~hide, hide))
        weights = is_known @ discounts
        means = (is_known * labels[top]) @ discounts / np.where(weights > 0, weights, 1)
        predicted = np.append(of_query, 0)[top]
        off = unknown * (labels[top] - np.where(np.isnan(predicted), means[:, None], predicted))
        best = -np.sort(-np.nan_to_num(query.judgments))[:K]
        ideal = float(best @ (1 / np.log2(np.arange(len(best)) + 2)))
        columns.append(off @ discounts / (ideal or 1.0))
    return np.asarray(_over_subsets(columns).std(axis=0))


def _disorder(queries: Sequence[QueryPassages], hidden: Sequence[Bools], gains: Sequence[Floats]) -> Floats:
    """Return the loss if a random sample is judged, over all queries and each subset."""
    board, truth = [], []
    for query, hide, of_query in zip(queries, hidden, gains, strict=True):
        top = query.ranks[:, :K]
        labels = np.append(np.where(hide, np.nan_to_num(query.judgments), 0), 0)
        truth.append(labels[top] @ (1 / np.log2(np.arange(top.shape[1]) + 2)))
        board.append(ndcg(query.ranks, of_query, K))
    return np.asarray(1 - np.nan_to_num(tau_b_columns(_over_subsets(board), _over_subsets(truth))))


def _over_subsets(columns: Sequence[Floats]) -> Floats:
    """Return the means of the runs over all queries, and over each subset if there are several."""
    figures = np.column_stack(columns)
    every = figures.mean(axis=1)[:, None]
    return np.hstack([every, QueryDraws().subset_means(figures)]) if figures.shape[1] > 1 else every


def ndcg(ranks: NDArray[np.int32], gains: Floats, k: int) -> Floats:
    """Return the nDCG@k of each run for a query, as `drawn_ndcg`; shape (runs,).

    Args:
        gains: gains of the pooled passages; NaN leaves a passage out of all rankings ("condensed
            list", Sakai, SIGIR 2007).
    """
    left_out = np.append(np.isnan(gains), True)[ranks]
    # Ranks below a left-out passage move up.
    order = np.argsort(left_out, axis=1, kind="stable")
    in_list = np.take_along_axis(np.where(left_out, -1, ranks), order, axis=1)
    return np.asarray(drawn_ndcg(in_list, np.nan_to_num(gains)[None], k, np.empty(0))[0])
