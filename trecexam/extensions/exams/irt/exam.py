"""An exam with names: responses, and the fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from trecexam.extensions.exams.irt.components import Components
from trecexam.extensions.exams.irt.fitting import Fit
from trecexam.extensions.exams.irt.model import Floats


@dataclass(frozen=True, eq=False)
class Exam:
    """The responses to fit: each examinee and each item has a response.

    Attributes:
        source: where the responses come from, as people know it.
        values: 1, 0, NaN; shape (n_examinees, n_items).
        texts: item -> its text, where it is known.
        groups: grouping -> group -> the places of its items.
        queries: item -> its query, for a rubric bank.
        notes: what was left out and what else one must know of the responses, one per line.
    """

    source: str
    examinees: tuple[str, ...]
    items: tuple[str, ...]
    values: Floats
    components: Components | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, Sequence[int]]] = field(default_factory=dict)
    queries: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class FittedExam:
    """An exam and its fit."""

    exam: Exam
    fit: Fit


def rest_correlations(values: Floats) -> Floats:
    """Each item's correlation with the examinees' share of right responses on the other items, -1..1.

    The corrected item-total correlation of classical test theory (Henrysson, "Correction of item-total
    correlations in item analysis", Psychometrika 28, 1963); of an examinee that misses responses, the share
    is of those it gave. NaN where an item's responses, or the shares, are all the same.
    """
    responded = ~np.isnan(values)
    right = np.where(responded, values, 0.0)
    n_other_responses = responded.sum(axis=1, keepdims=True) - responded
    rest = np.divide(
        right.sum(axis=1, keepdims=True) - right,
        n_other_responses,
        out=np.full(values.shape, np.nan),
        where=n_other_responses > 0,
    )
    used = responded & (n_other_responses > 0)
    n = np.maximum(used.sum(axis=0), 1)
    x, y = np.where(used, right, 0.0), np.where(used, rest, 0.0)
    dx, dy = (np.where(used, side - side.sum(axis=0) / n, 0.0) for side in (x, y))
    spread = np.sqrt((dx**2).sum(axis=0) * (dy**2).sum(axis=0))
    correlations: Floats = np.divide(
        (dx * dy).sum(axis=0), spread, out=np.full(values.shape[1], np.nan), where=spread > 1e-12
    )
    return correlations
