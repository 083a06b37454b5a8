"""Compares methods for unjudged passages: hides half of the judgments and compares the runs' order.

Passages that nobody judged have no part in it: a leaderboard that gives these 0 would favour giving 0 to what
is hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.learn.arithmetic.learning import Learned, by_regression, fit, predict
from trecexam.extensions.learn.arithmetic.passages import FEATURES, Bools, Floats, QueryPassages
from trecexam.extensions.learn.arithmetic.regression import expected
from trecexam.scores.correlation import half_width
from trecexam.scores.rank_correlation import QueryDraws, tau_b_columns

#: How the judged passages came to be judged.
Design = Literal["all", "random", "most retrieved"]
#: Of nDCG.
K = 10
#: Random halves that are hidden, one after the other.
REPEATS = 5
#: Halfway between a random sample (0.5) and the most retrieved passages alone (1).
_MOSTLY = 0.75
_FUSION = FEATURES.index("fusion")

#: (queries without what is hidden, what was learned of them) -> gains of each query's passages; NaN leaves a
#: passage out of rankings.
Way = Callable[[Sequence[QueryPassages], Learned], Sequence[Floats]]


@dataclass(frozen=True, eq=False)
class Compared:
    """Result of a method.

    Attributes:
        loss: how far it is from the right order of the runs; see `compare`.
        of_subsets: the same over subsets of the queries.
        counts: of hidden passages, of each query: officially relevant or not, and by the way; shape (queries,
            2, 2).
    """

    loss: float
    of_subsets: Floats
    counts: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Results of all methods on the same hidden judgments.

    Attributes:
        design: how the judged passages came to be judged.
        ways: name -> what came of it.
        hidden: how many judgments were hidden, on average over repeats.
        draws: of subsets of the queries.
        n_queries: how many there are.
    """

    design: Design
    ways: Mapping[str, Compared]
    hidden: float
    draws: QueryDraws
    n_queries: int

    def better(self, method: str, than: str) -> bool:
        """Whether a method's loss is significantly lower than another's.

        The end of the difference's 95% interval is above 0: Student's t, with the delete-d jackknife's
        standard error over queries.
        """
        if self.n_queries < 2:
            return False
        of_subsets = self.ways[than].of_subsets - self.ways[method].of_subsets
        error = self.draws.standard_error(of_subsets, self.n_queries)
        difference = self.ways[than].loss - self.ways[method].loss
        return difference > float(half_width(error, self.n_queries))

    def best(self, method: str, other_methods: Sequence[str]) -> str:
        """This method, or the one with the lowest loss among those that are `better`."""
        beating = [other for other in other_methods if self.better(other, method)]
        return min(beating, key=lambda other: self.ways[other].loss, default=method)


def design(queries: Sequence[QueryPassages]) -> tuple[Design, float]:
    """The design of the judgments, inferred from the runs' votes.

    Returns:
        What they are, and the share of pairs of a judged and an unjudged passage of the same query in which
        the judged one is retrieved more (ties half): 0.5 of a random sample, 1 of the most retrieved alone.
    """
    more, pairs = 0.0, 0
    for query in queries:
        judged, unjudged = (query.features[rows, _FUSION] for rows in (query.judged, ~query.judged))
        ordered = np.sort(unjudged)
        right = np.searchsorted(ordered, judged, side="right")
        ties = right - np.searchsorted(ordered, judged, side="left")
        more += float((len(unjudged) - right + ties / 2).sum())
        pairs += len(judged) * len(unjudged)
    if all(query.judged.all() for query in queries):
        return "all", 0.5
    # Where some queries are judged as a whole and the others not at all, nothing is judged for its votes.
    share = more / pairs if pairs else 0.5
    return ("most retrieved" if share >= _MOSTLY else "random"), share


def hidings(queries: Sequence[QueryPassages], kind: Design) -> list[list[Bools]]:
    """The hidden half of the judgments, chosen with the same design.

    Where these are the most retrieved, of each query the less retrieved half, once; of an odd number the
    greater part stays. Else a random half, `REPEATS` times.

    Returns:
        Of each repeat and each query, which passages are hidden.
    """
    rows_of = [np.flatnonzero(query.judged) for query in queries]
    if kind == "most retrieved":
        orders = [
            rows[np.argsort(query.features[rows, _FUSION], kind="stable")]
            for query, rows in zip(queries, rows_of, strict=True)
        ]
        return [
            [
                _mask(query, order[(len(order) + 1) // 2 :])
                for query, order in zip(queries, orders, strict=True)
            ]
        ]
    # Not seed 0: a sample that was drawn with it must not be hidden as a whole.
    rng = np.random.default_rng([0, 1])
    return [
        [
            _mask(query, rows[rng.random(len(rows)) < 0.5])
            for query, rows in zip(queries, rows_of, strict=True)
        ]
        for _ in range(REPEATS)
    ]


def compare(
    queries: Sequence[QueryPassages],
    ways: Mapping[str, Way],
    min_relevant: float,
    other_queries: Sequence[QueryPassages] = (),
    fitted: Callable[[int], None] = lambda done: None,
) -> Comparison:
    """Compares all methods with half of the judgments hidden.

    Where the most retrieved passages are judged, the loss of a way is how far it is off, for the hidden
    passages among the first ten ranks of a run, in the sum of gain / log2(rank + 1) over the query's best:
    the standard deviation over the runs of the mean over the queries. What it has wrong of all runs alike
    does not matter. A condensed list means what it leaves out by the mean of what it has.

    Where a random sample is judged, it is 1 - Kendall's tau of the leaderboard that the method gives for the
    half that is known with the sum of gain / log2(rank + 1) over the hidden judgments. A random half says
    roughly how good a run is, and favours no way.

    Args:
        min_relevant: from this label on a passage is relevant.
        other_queries: of another track, which are learned from, too.
        fitted: called with how many of the `n_fits` fits are done.

    Raises:
        ValueError: the rest cannot be learned from.
    """
    kind, _ = design(queries)
    draws = QueryDraws()
    sums: dict[str, list[tuple[float, Floats]]] = {name: [] for name in ways}
    counts = {name: np.zeros((len(queries), 2, 2), np.int64) for name in ways}
    repeats = hidings(queries, kind)
    for number, repeat in enumerate(repeats, 1):
        seen = [query.hiding(hide) for query, hide in zip(queries, repeat, strict=True)]
        learned = fit([*other_queries, *seen])
        for name, method in ways.items():
            gains = method(seen, learned)
            figures = (
                _errors(queries, repeat, gains)
                if kind == "most retrieved"
                else np.column_stack(
                    [ndcg(query.ranks, of, K) for query, of in zip(queries, gains, strict=True)]
                )
            )
            truth = None if kind == "most retrieved" else _hidden_sums(queries, repeat)
            sums[name].append(_losses(figures, truth, draws))
            for at, (query, of_query, hide) in enumerate(zip(queries, gains, repeat, strict=True)):
                pair = 2 * (query.judgments[hide] >= min_relevant) + (of_query[hide] >= min_relevant)
                counts[name][at] += np.bincount(pair.astype(int), minlength=4).reshape(2, 2)
        fitted(number)
    return Comparison(
        kind,
        {
            name: Compared(
                float(np.mean([loss for loss, _ in of_way])),
                np.mean([of_subsets for _, of_subsets in of_way], axis=0),
                counts[name],
            )
            for name, of_way in sums.items()
        },
        float(np.mean([sum(int(hide.sum()) for hide in repeat) for repeat in repeats])),
        draws,
        len(queries),
    )


def n_fits(queries: Sequence[QueryPassages]) -> int:
    """Return how many fits `compare` makes, each on half of the judgments."""
    return 1 if design(queries)[0] == "most retrieved" else REPEATS


def zeros(queries: Sequence[QueryPassages], _: Learned) -> list[Floats]:
    """Unjudged passages count as not relevant."""
    return [np.nan_to_num(query.judgments) for query in queries]


def condensed(queries: Sequence[QueryPassages], _: Learned) -> list[Floats]:
    """Unjudged passages are left out of rankings (Sakai, "Alternatives to Bpref", SIGIR 2007)."""
    return [query.judgments for query in queries]


def expectations(queries: Sequence[QueryPassages], learned: Learned) -> list[Floats]:
    """The expected labels of the learned leaderboard."""
    return [expected(by_regression(learned, query), learned.scale) for query in queries]


def labels(queries: Sequence[QueryPassages], learned: Learned) -> list[Floats]:
    """The labels that `fill` writes."""
    return [predict(learned, query).labels for query in queries]


def _errors(queries: Sequence[QueryPassages], hidden: Sequence[Bools], gains: Sequence[Floats]) -> Floats:
    """Each run's error because of hidden judgments; shape (runs, queries)."""
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
    return np.column_stack(columns)


def _hidden_sums(queries: Sequence[QueryPassages], hidden: Sequence[Bools]) -> Floats:
    """Each run's sum of gain / log2(rank + 1) over hidden passages; shape (runs, queries)."""
    columns = []
    for query, hide in zip(queries, hidden, strict=True):
        top = query.ranks[:, :K]
        gains = np.append(np.where(hide, np.nan_to_num(query.judgments), 0), 0)
        columns.append(gains[top] @ (1 / np.log2(np.arange(top.shape[1]) + 2)))
    return np.column_stack(columns)


def _losses(figures: Floats, truth: Floats | None, draws: QueryDraws) -> tuple[float, Floats]:
    """The loss over all queries, and over each subset of them; see `compare`."""
    every = figures.mean(axis=1)[:, None]
    both = np.hstack([every, draws.subset_means(figures)]) if figures.shape[1] > 1 else every
    if truth is None:
        losses = both.std(axis=0)
    else:
        of_truth = truth.mean(axis=1)[:, None]
        if truth.shape[1] > 1:
            of_truth = np.hstack([of_truth, draws.subset_means(truth)])
        losses = 1 - np.nan_to_num(tau_b_columns(both, of_truth))
    return float(losses[0]), np.asarray(losses[1:])


def _mask(query: QueryPassages, rows: NDArray[np.intp]) -> Bools:
    mask = np.zeros(len(query.doc_ids), bool)
    mask[rows] = True
    return mask


def ndcg(ranks: NDArray[np.int32], gains: Floats, k: int) -> Floats:
    """nDCG@k of each run for a query as in trec_eval: sum of gain / log2(rank + 1), over the best sum.

    Args:
        ranks: shape (runs, depth): the place among `gains` of the passage at each rank; -1 for none.
        gains: of the pooled passages; a negative one counts 0, and one that is NaN leaves its passage out of
            all rankings ("condensed list", Sakai, SIGIR 2007).
        k: ranks that count.

    Returns:
        Shape (runs,); 0 where nothing is gained.
    """
    discounts = 1 / np.log2(np.arange(k) + 2)
    has_gain = ~np.isnan(gains)
    at_rank = np.append(np.where(has_gain, np.maximum(gains, 0), 0), 0)[ranks]
    in_list = np.append(has_gain, False)[ranks]
    # Where a rank is left out, those below it move up.
    position = np.cumsum(in_list, axis=1) - 1
    counts = in_list & (position < k)
    sums = (at_rank * np.where(counts, discounts[np.where(counts, position, 0)], 0)).sum(axis=1)
    best = np.sort(np.maximum(gains[has_gain], 0))[::-1][:k]
    ideal = float((best * discounts[: len(best)]).sum())
    return np.asarray(sums / ideal if ideal else np.zeros(len(ranks)))
