"""Measures of all runs at once for each choice of k, threshold and gains. Unjudged passages count as 0."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.audit.records import AuditInputs, Floats, Rows, Side
from trecexam.scores.columns.measures.base import ratio
from trecexam.scores.columns.measures.ndcg import dcg
from trecexam.scores.values import TIE_DECIMALS

#: Cutoffs to try beside the main cutoff.
CUTOFFS = (5, 10, 20)
Kind = Literal["nDCG", "P"]


class Choice(NamedTuple):
    """A measure at cutoff k.

    Attributes:
        kind: nDCG or P.
        rel: lowest relevant label, with gain 1; None (nDCG only) uses labels as gains.
    """

    kind: Kind
    k: int
    rel: int | None = None

    @property
    def name(self) -> str:
        """Return the name in ir_measures; for binary nDCG, which ir_measures lacks, nDCG(rel=2)@10."""
        is_default = self.rel is None or (self.kind, self.rel) == ("P", 1)
        return f"{self.kind}@{self.k}" if is_default else f"{self.kind}(rel={self.rel})@{self.k}"


def choices(side: Side, cutoff: int) -> list[Choice]:
    """Return the measures that a paper may report with this set of judgments."""
    every: list[tuple[Kind, int | None]] = [("nDCG", None), *(("nDCG", rel) for rel in side.thresholds)]
    every += [("P", rel) for rel in side.thresholds]
    return [Choice(kind, k, rel) for k in sorted({*CUTOFFS, cutoff}) for kind, rel in every]


def values(inputs: AuditInputs, side: Side, choice: Choice) -> Floats:
    """Return every run's value on every query, bit for bit as trec_eval's; shape (runs, queries)."""
    gains = _gains(side.labels[inputs.rows[:, :, : choice.k]], choice)
    if choice.kind == "P":
        return np.asarray(gains.sum(axis=2) / choice.k)
    ideal = np.broadcast_to(ideal_dcg(side, choice), gains.shape[:2])
    return ratio(dcg_of(gains).ravel(), ideal.ravel()).reshape(ideal.shape)


def _gains(labels: Rows, choice: Choice) -> Rows:
    return np.maximum(labels, 0) if choice.rel is None else (labels >= choice.rel).astype(np.int32)


def dcg_of(gains: Rows) -> Floats:
    """Return the DCG of gains in the order of ranks, which are the last axis."""
    flat = gains.reshape(-1, gains.shape[-1])
    ranks = np.broadcast_to(np.arange(flat.shape[1], dtype=np.int32), flat.shape)
    return dcg(flat, ranks).reshape(gains.shape[:-1])


def ideal_dcg(
    side: Side, choice: Choice, n_added: NDArray[np.intp] | None = None, highest: int = 0
) -> Floats:
    """Return the DCG of each query's best ranking.

    Args:
        n_added, highest: number of unjudged passages per query that get the highest gain, and this gain.
    """
    judged = side.judged
    gains = _gains(judged.labels, choice)
    order = np.lexsort((-gains, judged.query_of_row))
    rank = np.arange(len(order)) - judged.offsets[judged.query_of_row]
    before = np.zeros(len(judged.query_ids), np.intp) if n_added is None else n_added
    ranked = np.where(np.arange(choice.k) < before[:, None], np.int32(highest), np.int32(0))
    rank = rank + before[judged.query_of_row]
    first = rank < choice.k
    ranked[judged.query_of_row[first], rank[first]] = gains[order][first]
    return dcg_of(ranked)


def main_choice(inputs: AuditInputs) -> Choice:
    """Return nDCG at the cutoff."""
    return Choice("nDCG", inputs.cutoff)


def main_values(inputs: AuditInputs, side: Side) -> Floats:
    """Return the values of the main measure; shape (runs, queries)."""
    return values(inputs, side, main_choice(inputs))


def ranks_of(means: Floats) -> NDArray[np.intp]:
    """Return ranks from 1, the best; tied runs share the best of their ranks."""
    rounded = np.round(means, TIE_DECIMALS)
    return np.asarray(1 + (rounded[None, :] > rounded[:, None]).sum(axis=1))
