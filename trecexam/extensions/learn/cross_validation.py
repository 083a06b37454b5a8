"""How good learning is on judgments that are hidden from it, beside the plain rules for unjudged passages."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.learn.arithmetic.cuts import fit_cuts, labels_of
from trecexam.extensions.learn.arithmetic.features import Floats
from trecexam.extensions.learn.arithmetic.learning import QueryPassages, fit, predict
from trecexam.extensions.learn.arithmetic.ndcg import ndcg
from trecexam.extensions.learn.arithmetic.pooled import PooledQueryToLearn
from trecexam.extensions.learn.arithmetic.process import KERNELS, Kernel
from trecexam.extensions.learn.arithmetic.steps import C
from trecexam.extensions.learn.splits import Split
from trecexam.scores.correlation import MIN_QUERIES, Correlation, correlate, half_width
from trecexam.scores.kappa import kappa
from trecexam.scores.rank_correlation.ranks import means, ranked
from trecexam.scores.rank_correlation.resampling import QueryDraws
from trecexam.scores.rank_correlation.tau import kendall_tau

LEARNED = "learned"
#: Ranks that count in nDCG.
K = 10

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Estimate:
    """A figure and its 95% interval, which holds it; NaN where it has none."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Row:
    """What came of a split by one way of treating hidden judgments.

    Attributes:
        split: what was hidden.
        method: "learned", "unjudged = 0" ..., "condensed", or the grader.
        known, hidden: how many judgments, on average over the split's repeats.
        kappa: of hidden judgments, at least min_relevant or not; NaN where the method gives no labels.
        tau: Kendall's, of nDCG@10 leaderboards with these gains and with all judgments.
        shift: how many ranks a run moves on average; where teams are left out, a run of these.
        gain: of "learned", its tau less that of the best other rule; elsewhere NaN.

    The intervals of kappa and tau are those of `kappa` and `correlate`; those of shift and gain are Student's
    t with the delete-d jackknife's standard error, as tau's are. None has one with fewer than five queries.
    """

    split: str
    method: str
    known: float
    hidden: float
    kappa: Estimate
    tau: Estimate
    shift: Estimate
    gain: Estimate = Estimate()


class CrossValidation:
    """Compares learning with plain rules on the judgments of a track.

    Args:
        queries: of the track.
        others: passages of another track, whose judgments are learned from, too.
        min_relevant: from this judgment on, a passage is relevant.
        graders: name -> of each query the mean ratings of its `doc_ids`, NaN where there is none.
        resamples: how many subsets of the queries the intervals are made of.
        seed: of these.
        kernels, c: as of `fit`.
    """

    def __init__(
        self,
        queries: Sequence[PooledQueryToLearn],
        min_relevant: int,
        graders: Mapping[str, Sequence[Floats]] | None = None,
        others: Sequence[QueryPassages] = (),
        resamples: int = 300,
        seed: int = 0,
        kernels: Sequence[Kernel] = KERNELS,
        c: float = C,
    ) -> None:
        self._queries = queries
        self._others = tuple(others)
        self._min_relevant = min_relevant
        self._graders = graders or {}
        self._kernels = kernels
        self._c = c
        self._draws = QueryDraws(resamples, seed)
        judged = [query.judgments for query in queries]
        every = np.concatenate([*judged, *(query.elsewhere for query in queries)])
        self._scale = np.unique(every[~np.isnan(every)])
        self._official = self._board([np.nan_to_num(of_query) for of_query in judged])

    @property
    def methods(self) -> tuple[str, ...]:
        """The other rules, in the order of the rows."""
        constants = (f"unjudged = {label:g}" for label in (0, *self._scale[self._scale > 0]))
        return (*constants, "condensed", *self._graders)

    def rows(self, split: Split, progress: Callable[[], None] | None = None) -> tuple[Row, ...]:
        """What came of a split: "learned" first, then each of `methods`."""
        names = (LEARNED, *self.methods)
        taus: dict[str, list[Floats]] = {name: [] for name in names}
        shifts: dict[str, list[Floats]] = {name: [] for name in names}
        correlations: dict[str, list[Correlation]] = {name: [] for name in names}
        # One table of counts a query and method; repeats by themselves, parts of one whole together.
        counts: dict[str, list[NDArray[np.int64]]] = {name: [] for name in names}
        labelled: set[str] = set()
        known: list[int] = []
        hidden_counts: list[int] = []
        for repeat in split.repeats:
            gains: dict[str, list[Floats]] = {
                name: [query.judgments for query in self._queries] for name in names
            }
            tables = {name: np.zeros((len(self._queries), 2, 2), np.int64) for name in names}
            n_known = n_hidden = 0
            all_blank: set[int] = set()
            for part in repeat:
                seen = [query.hiding(hide) for query, hide in zip(self._queries, part.hidden, strict=True)]
                n_known += sum(int((~np.isnan(query.judgments)).sum()) for query in seen)
                n_hidden += sum(int(hide.sum()) for hide in part.hidden)
                blank = {
                    at
                    for at, (query, hide) in enumerate(zip(seen, part.hidden, strict=True))
                    if hide.any() and np.isnan(query.judgments).all()
                }
                all_blank |= blank
                filled = self._filled(seen)
                for name, (of_queries, labels) in filled.items():
                    if split.whole:
                        touched = [bool(hide.any()) for hide in part.hidden]
                        gains[name] = [
                            new if use else old
                            for new, old, use in zip(of_queries, gains[name], touched, strict=True)
                        ]
                    else:
                        tau, shift, correlation = self._compared(self._board(of_queries, blank), part.runs)
                        taus[name].append(tau)
                        shifts[name].append(shift)
                        correlations[name].append(correlation)
                    if labels is not None:
                        labelled.add(name)
                        for at, hide in enumerate(part.hidden):
                            tables[name][at] += self._table(self._queries[at].judgments, labels[at], hide)
                if progress is not None:
                    progress()
            if split.whole:
                for name in names:
                    tau, shift, correlation = self._compared(self._board(gains[name], all_blank), None)
                    taus[name].append(tau)
                    shifts[name].append(shift)
                    correlations[name].append(correlation)
            for name in names:
                counts[name].append(tables[name])
            known.append(n_known // max(1, len(repeat)))
            hidden_counts.append(n_hidden)
        n_known_mean, n_hidden_mean = float(np.mean(known)), float(np.mean(hidden_counts))
        mean_taus = {name: np.mean(values, axis=0) for name, values in taus.items() if values}
        rows = []
        for name in names:
            if name not in mean_taus:
                continue
            gain = Estimate()
            if name == LEARNED:
                others = [other for other in self.methods if not math.isnan(mean_taus[other][0])]
                if others:
                    best = max(others, key=lambda other: float(mean_taus[other][0]))
                    gain = self._estimate(mean_taus[LEARNED] - mean_taus[best], -2, 2)
            kappas = [kappa(table) for table in counts[name]] if name in labelled else []
            rows.append(
                Row(
                    split.name,
                    name,
                    n_known_mean,
                    n_hidden_mean,
                    _mean(kappas, "value", "low", "high") if kappas else Estimate(),
                    _mean(correlations[name], "kendall_tau", "tau_low", "tau_high"),
                    self._estimate(np.mean(shifts[name], axis=0), 0, len(self._official) - 1),
                    gain,
                )
            )
        return tuple(rows)

    def _filled(
        self, seen: Sequence[PooledQueryToLearn]
    ) -> Mapping[str, tuple[list[Floats], list[Floats] | None]]:
        """For each way: gains of all pooled passages, a query each; and labels, where it gives any.

        Raises:
            ValueError: what is left cannot be learned from.
        """
        filled: dict[str, tuple[list[Floats], list[Floats] | None]] = {}
        learned = fit([*self._others, *(query.passages for query in seen)], self._kernels, self._c)
        gains: list[Floats] = []
        labels: list[Floats] = []
        for query in seen:
            prediction = predict(learned, query.passages)
            for values, of_passages in ((gains, prediction.gains), (labels, prediction.labels)):
                # Without a text nothing is known of a passage.
                whole = np.nan_to_num(query.judgments)
                whole[query.rows] = of_passages
                values.append(whole)
        filled[LEARNED] = gains, labels
        for label in (0, *self._scale[self._scale > 0]):
            constant = [np.where(np.isnan(query.judgments), label, query.judgments) for query in seen]
            filled[f"unjudged = {label:g}"] = constant, constant
        filled["condensed"] = [query.judgments for query in seen], None
        for name, of_queries in self._graders.items():
            filled[name] = self._mapped(seen, of_queries)
        return filled

    def _mapped(
        self, seen: Sequence[PooledQueryToLearn], means: Sequence[Floats]
    ) -> tuple[list[Floats], list[Floats] | None]:
        """A grader's mean ratings, cut where they agree best with what is known, in place of the rest.

        Where nothing is known to cut them by, they are gains as they are, and there are no labels.
        """
        ratings = np.concatenate(means)
        judged = np.concatenate([query.judgments for query in seen])
        both = ~np.isnan(ratings) & ~np.isnan(judged)
        scale = np.unique(judged[both])
        if len(scale) < 2:
            return _filled_by(means, seen), None
        cuts = fit_cuts(ratings[both], judged[both], scale)
        labels = [np.where(np.isnan(m), np.nan, labels_of(m, cuts, scale)) for m in means]
        return (filled := _filled_by(labels, seen)), filled

    def _board(self, gains: Sequence[Floats], blank: Collection[int] = ()) -> Floats:
        """nDCG@10, shape (runs, queries).

        Args:
            blank: places of queries all of whose judgments are hidden, those outside the pool, too.
        """
        return np.column_stack(
            [
                ndcg(query.ranks, of_query, K, None if at in blank else query.elsewhere)
                for at, (query, of_query) in enumerate(zip(self._queries, gains, strict=True))
            ]
        )

    def _compared(self, board: Floats, runs: Sequence[int] | None) -> tuple[Floats, Floats, Correlation]:
        """Tau, and the shift of these runs (None: all), over all queries and then over each subset of them;
        and tau with its interval.
        """
        sides = [means(side)[:, None] for side in (board, self._official)]
        if len(self._queries) >= MIN_QUERIES and self._draws.resamples > 0:
            subsets = (self._draws.subset_means(side) for side in (board, self._official))
            sides = [np.hstack(both) for both in zip(sides, subsets, strict=True)]
        taus, shifts = np.empty(sides[0].shape[1]), np.empty(sides[0].shape[1])
        for part, ours, theirs in ranked(*sides):
            taus[part] = kendall_tau(ours, theirs)
            moved = np.abs(ours.mean_ranks - theirs.mean_ranks)
            shifts[part] = (moved if runs is None else moved[list(runs)]).mean(axis=0)
        return taus, shifts, correlate(board, self._official, draws=self._draws)

    def _estimate(self, values: Floats, lowest: float, highest: float) -> Estimate:
        """The first value, with an interval by the others, which are of subsets; NaN among these is left out.

        Args:
            lowest, highest: the figure's range.
        """
        value, of_subsets = float(values[0]), values[1:][~np.isnan(values[1:])]
        if math.isnan(value) or not of_subsets.size:
            return Estimate(value)
        n = len(self._queries)
        half = float(half_width(self._draws.standard_error(of_subsets, n), n))
        return Estimate(value, max(lowest, value - half), min(highest, value + half))

    def _table(self, judgments: Floats, labels: Floats, hidden: Bools) -> NDArray[np.int64]:
        official, ours = (side[hidden] >= self._min_relevant for side in (judgments, labels))
        cells = np.bincount(2 * official.astype(np.int64) + ours, minlength=4)
        return np.asarray(cells.reshape(2, 2), np.int64)


def _filled_by(values: Sequence[Floats], seen: Sequence[PooledQueryToLearn]) -> list[Floats]:
    """Of each query the judgments, and where there are none these values, and where these are NaN, 0."""
    return [
        np.where(np.isnan(query.judgments), np.nan_to_num(of_query), query.judgments)
        for query, of_query in zip(seen, values, strict=True)
    ]


def verdicts(rows: Sequence[Row]) -> Iterator[str]:
    """For each split in a line, whether learning is better than the best of the others."""
    for row in rows:
        if row.method != LEARNED:
            continue
        others = [r for r in rows if r.split == row.split and r is not row and not math.isnan(r.tau.value)]
        if not others or math.isnan(row.tau.value):
            yield f"{row.split}: {_alone(row)}"
            continue
        best = max(others, key=lambda other: other.tau.value)
        difference = f"tau {row.tau.value:.3f} against {best.tau.value:.3f} of `{best.method}`"
        interval = f"{row.gain.value:+.3f}, 95% interval {row.gain.low:+.3f} to {row.gain.high:+.3f}"
        if math.isnan(row.gain.low):
            interval = f"{row.gain.value:+.3f}, no interval from fewer than {MIN_QUERIES} queries"
        if row.gain.value <= 0:
            how = "no better than the best other way"
        elif row.gain.low > 0:
            how = "better than every other way"
        else:
            how = "not shown to be better than the best other way"
        yield f"{row.split}: learned labels are {how}: {difference} ({interval})"


def _alone(row: Row) -> str:
    if math.isnan(row.tau.value):
        return "there is no tau to compare"
    return f"every other way ties all runs, learned labels do not: tau {row.tau.value:.3f}"


def _mean(figures: Sequence[object], *names: str) -> Estimate:
    """The means of a value and of its interval's ends."""
    return Estimate(*(float(np.mean([getattr(figure, name) for figure in figures])) for name in names))
