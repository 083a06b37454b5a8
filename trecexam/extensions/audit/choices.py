"""Measures of all runs at once for each choice of k, threshold, gains and treatment of unjudged passages."""

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
    """The variants of a measure that a paper may report with this set of judgments."""
    every: list[tuple[Kind, int | None]] = [("nDCG", None), *(("nDCG", rel) for rel in side.thresholds)]
    every += [("P", rel) for rel in side.thresholds]
    return [
        Choice(kind, k, rel, condensed)
        for k in sorted({*CUTOFFS, cutoff})
        for condensed in (False, True)
        for kind, rel in every
    ]


def labels_of(inputs: AuditInputs, side: Side, *, condensed: bool = False) -> Rows:
    """The labels at the first ranks, `UNJUDGED` if missing; shape (runs, queries, DEPTH)."""
    return side.labels[side.condensed if condensed else inputs.rows]


class Bounds(NamedTuple):
    """Bounds of a measure's parts over all possible labels of unjudged passages.

    Attributes:
        least, most: every run's DCG, or P, with its unjudged passages at 0 and at the highest label; shape
            (runs, queries).
        low, high: what it is divided by, with all unjudged passages at 0 and at the highest label; shape
            (queries,). 1 for P.
    """

    least: Floats
    most: Floats
    low: Floats
    high: Floats


def values(side: Side, labels: Rows, choice: Choice) -> Floats:
    """Every run's value on every query, bit for bit as trec_eval's; shape (runs, queries).

    Args:
        labels: of `labels_of`, condensed as the choice is.
    """
    gains = _gains(labels[:, :, : choice.k], choice)
    if choice.kind == "P":
        return np.asarray(gains.sum(axis=2) / choice.k)
    ideal = np.broadcast_to(_ideal(side, choice), gains.shape[:2])
    return ratio(_dcg(gains).ravel(), ideal.ravel()).reshape(ideal.shape)


def bounds(side: Side, labels: Rows, choice: Choice, unjudged: Bools, n_unjudged: NDArray[np.intp]) -> Bounds:
    """The bounds of a measure's parts. The highest label is the highest that this side gave, at least 1.

    Args:
        labels: of `labels_of`.
        unjudged: at which ranks a passage has no label; of the same shape.
        n_unjudged: of each query how many passages may get a label: those of all runs.
    """
    gains = _gains(labels[:, :, : choice.k], choice)
    highest = int(_gains(np.array([max(1, side.judged.labels.max(initial=1))]), choice)[0])
    most = np.where(unjudged[:, :, : choice.k], np.int32(highest), gains)
    if choice.kind == "P":
        ones = np.ones(gains.shape[1])
        return Bounds(gains.sum(axis=2) / choice.k, most.sum(axis=2) / choice.k, ones, ones)
    ideals = _ideal(side, choice), _ideal(side, choice, n_unjudged, highest)
    return Bounds(_dcg(gains), _dcg(most), *ideals)


def _gains(labels: Rows, choice: Choice) -> Rows:
    return np.maximum(labels, 0) if choice.rel is None else (labels >= choice.rel).astype(np.int32)


def _dcg(gains: Rows) -> Floats:
    """DCG of gains in the order of ranks, which are the last axis."""
    flat = gains.reshape(-1, gains.shape[-1])
    ranks = np.broadcast_to(np.arange(flat.shape[1], dtype=np.int32), flat.shape)
    return dcg(flat, ranks).reshape(gains.shape[:-1])


def _ideal(side: Side, choice: Choice, n_added: NDArray[np.intp] | None = None, highest: int = 0) -> Floats:
    """Of each query the DCG of its best ranking, with so many more passages of the highest gain."""
    judged = side.judged
    gains = _gains(judged.labels, choice)
    order = np.lexsort((-gains, judged.query_of_row))
    rank = np.arange(len(order)) - judged.offsets[judged.query_of_row]
    before = np.zeros(len(judged.query_ids), np.intp) if n_added is None else n_added
    ranked = np.where(np.arange(choice.k) < before[:, None], np.int32(highest), np.int32(0))
    place = rank + before[judged.query_of_row]
    first = place < choice.k
    ranked[judged.query_of_row[first], place[first]] = gains[order][first]
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
