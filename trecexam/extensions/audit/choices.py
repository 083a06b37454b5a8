"""Measures of all runs at once, by the choices that one has: k, threshold, gains, what is unjudged."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.audit.records import AuditInputs, Bools, Floats, Rows, Side
from trecexam.scores.columns.measures.base import ratio
from trecexam.scores.columns.measures.ndcg import dcg
from trecexam.scores.values import TIE_DECIMALS

#: Cutoffs that are tried beside the main one.
CUTOFFS = (5, 10, 20)
Kind = Literal["nDCG", "P"]


class Choice(NamedTuple):
    """A measure at cutoff k.

    Attributes:
        kind: nDCG or P.
        rel: the label from which a passage is relevant, with gain 1; None for labels as gains, of nDCG alone.
        condensed: unjudged passages are left out; else they count as 0.
    """

    kind: Kind
    k: int
    rel: int | None = None
    condensed: bool = False

    @property
    def name(self) -> str:
        """As ir_measures prints it; binary nDCG, whose name there spells out all gains, is nDCG(rel=2)@10."""
        inside = [f"rel={self.rel}"] * (self.rel is not None and (self.kind, self.rel) != ("P", 1))
        inside += ["judged_only=True"] * self.condensed
        return f"{self.kind}({','.join(inside)})@{self.k}" if inside else f"{self.kind}@{self.k}"


def choices(side: Side, cutoff: int) -> list[Choice]:
    """The choices that a paper may make with this set of judgments."""
    every: list[tuple[Kind, int | None]] = [("nDCG", None), *(("nDCG", rel) for rel in side.thresholds)]
    every += [("P", rel) for rel in side.thresholds]
    return [
        Choice(kind, k, rel, condensed)
        for k in sorted({*CUTOFFS, cutoff})
        for condensed in (False, True)
        for kind, rel in every
    ]


def labels_of(inputs: AuditInputs, side: Side, *, condensed: bool = False) -> Rows:
    """The labels at the first ranks, `UNJUDGED` where there is none; shape (runs, queries, DEPTH)."""
    return side.labels[side.condensed if condensed else inputs.rows]


def values(side: Side, labels: Rows, choice: Choice, added: Bools | None = None) -> Floats:
    """Every run's value on every query, bit for bit as trec_eval's; shape (runs, queries).

    Args:
        labels: of `labels_of`, condensed as the choice is.
        added: which ranks, of the same shape, have the highest label instead; these passages are then in
            the ideal ranking of this run and query, too.
    """
    best = max(side.thresholds, default=1) if choice.rel is None else 1
    gains = _gains(labels[:, :, : choice.k], choice)
    n_added = np.zeros(gains.shape[:2], np.intp)
    if added is not None:
        gains = np.where(added[:, :, : choice.k], np.int32(best), gains)
        n_added = added[:, :, : choice.k].sum(axis=2)
    if choice.kind == "P":
        return np.asarray(gains.sum(axis=2) / choice.k)
    ideals = [_ideal(side, choice, best, n) for n in range(int(n_added.max(initial=0)) + 1)]
    ideal = np.stack(ideals, axis=1)[np.arange(gains.shape[1]), n_added]
    return ratio(_dcg(gains.reshape(-1, gains.shape[2])), ideal.ravel()).reshape(ideal.shape)


def _gains(labels: Rows, choice: Choice) -> Rows:
    return np.maximum(labels, 0) if choice.rel is None else (labels >= choice.rel).astype(np.int32)


def _dcg(gains: Rows) -> Floats:
    """DCG of gains in the order of ranks."""
    return dcg(gains, np.broadcast_to(np.arange(gains.shape[1], dtype=np.int32), gains.shape))


def _ideal(side: Side, choice: Choice, best: int, n_added: int) -> Floats:
    """Of each query the DCG of its best ranking with so many more passages of the best gain."""
    judged = side.judged
    gains = _gains(judged.labels, choice)
    order = np.lexsort((-gains, judged.query_of_row))
    rank = np.arange(len(order)) - judged.offsets[judged.query_of_row]
    first = rank < choice.k - n_added
    ranked = np.zeros((len(judged.query_ids), choice.k), np.int32)
    ranked[:, :n_added] = best
    ranked[judged.query_of_row[first], n_added + rank[first]] = gains[order][first]
    return _dcg(ranked)


def main_choice(inputs: AuditInputs) -> Choice:
    """nDCG at the cutoff."""
    return Choice("nDCG", inputs.cutoff)


def main_values(inputs: AuditInputs, side: Side) -> Floats:
    """The main measure; shape (runs, queries)."""
    return values(side, labels_of(inputs, side), main_choice(inputs))


def ranks_of(means: Floats) -> NDArray[np.intp]:
    """Ranks from 1, the best; tied runs share the best of their ranks."""
    rounded = np.round(means, TIE_DECIMALS)
    return np.asarray(1 + (rounded[None, :] > rounded[:, None]).sum(axis=1))
