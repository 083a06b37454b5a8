"""Measures of all runs at once, by the choices that one has: k, threshold, gains, what is unjudged."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.audit.records import AuditInputs, Floats, Rows, Side
from trecexam.scores.columns import UNJUDGED
from trecexam.scores.columns.measures.base import discounts, ratio
from trecexam.scores.columns.measures.ndcg import dcg, ideal_dcg
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


def values(side: Side, labels: Rows, choice: Choice) -> Floats:
    """Every run's value on every query, bit for bit as trec_eval's; shape (runs, queries).

    Args:
        labels: of `labels_of`, condensed as the choice is.
    """
    top = labels[:, :, : choice.k]
    gains = np.maximum(top, 0) if choice.rel is None else (top >= choice.rel).astype(np.int32)
    if choice.kind == "P":
        return np.asarray(gains.sum(axis=2) / choice.k)
    flat = gains.reshape(-1, gains.shape[2])
    ideal = ideal_dcg(side.judged, choice.k, _gains(side, choice))
    found = dcg(flat, np.broadcast_to(np.arange(flat.shape[1], dtype=np.int32), flat.shape))
    return ratio(found, np.tile(ideal, len(labels))).reshape(labels.shape[:2])


def best_values(side: Side, labels: Rows, unjudged: NDArray[np.bool_], choice: Choice) -> Floats:
    """The values if each run's own unjudged passages had the highest label, and only they.

    The ideal ranking has these passages, too. `values` are the worst case: there they are not relevant.

    Args:
        unjudged: which of the ranks hold a passage without a label; shape (runs, queries, DEPTH).
    """
    top, added = labels[:, :, : choice.k], unjudged[:, :, : choice.k]
    best = max(side.thresholds, default=1) if choice.rel is None else 1
    gains = np.maximum(top, 0) if choice.rel is None else (top >= choice.rel).astype(np.int32)
    gains = np.where(added, np.int32(best), gains)
    if choice.kind == "P":
        return np.asarray(gains.sum(axis=2) / choice.k)
    weights = 1 / discounts(choice.k)[: choice.k]
    ideals = _ideals(side, choice, best)
    ideal = ideals[np.arange(labels.shape[1]), added.sum(axis=2)]
    return ratio((gains @ weights).ravel(), ideal.ravel()).reshape(ideal.shape)


def _gains(side: Side, choice: Choice) -> dict[int, int] | None:
    if choice.rel is None:
        return None
    known = np.unique(side.judged.labels[side.judged.labels != UNJUDGED]).tolist()
    return {label: int(label >= choice.rel) for label in known}


def _ideals(side: Side, choice: Choice, best: int) -> Floats:
    """DCG of the best ranking with 0, 1, ... k more passages of the best label; shape (queries, k + 1)."""
    judged, k = side.judged, choice.k
    gains = np.maximum(judged.labels, 0)
    if choice.rel is not None:
        gains = (judged.labels >= choice.rel).astype(np.int32)
    order = np.lexsort((-gains, judged.query_of_row))
    rank = np.arange(len(order)) - judged.offsets[judged.query_of_row]
    first = rank < k
    ranked = np.zeros((len(judged.query_ids), k))
    ranked[judged.query_of_row[first], rank[first]] = gains[order][first]
    weights = 1 / discounts(k)[:k]
    added = np.concatenate(([0.0], np.cumsum(best * weights)))
    columns = [added[n] + ranked[:, : k - n] @ weights[n:] for n in range(k + 1)]
    return np.stack(columns, axis=1)


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
