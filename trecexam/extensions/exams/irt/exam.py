"""An exam with names: responses, the fit, and the quality of each item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.exams.irt.components import Components
from trecexam.extensions.exams.irt.estimation.marginal import Z_95
from trecexam.extensions.exams.irt.fitting import Fit, constant
from trecexam.extensions.exams.irt.improvement import least_discriminating
from trecexam.extensions.exams.irt.model import Floats, item_information
from trecexam.extensions.exams.irt.settings import CERTAIN_DIGITS

#: Two items are redundant from this correlation of their responses on: one tells nearly all that both do.
REDUNDANT = 0.9
#: Fewer examinees than this that got an item right, or wrong, are too few to say that it is like another.
LEAST_EITHER = 3
#: An item with less than this share of the mean item's information is hardly worth its place.
UNINFORMATIVE = 0.1


@dataclass(frozen=True, eq=False)
class Exam:
    """The responses to fit: each examinee and each item has a response.

    Attributes:
        values: 1, 0, NaN; shape (n_examinees, n_items).
        texts: item -> its text, where it is known.
        groups: grouping -> group -> the places of its items.
        queries: item -> its query, for a rubric bank.
        notes: what was left out and what else one must know of the responses, one per line.
    """

    examinees: tuple[str, ...]
    items: tuple[str, ...]
    values: Floats
    components: Components | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, Sequence[int]]] = field(default_factory=dict)
    queries: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ItemQuality:
    """The quality of an item.

    Attributes:
        rank: 1 for the item that tells examinees apart least (`least_discriminating`), and so on.
        share: of the responses that are right, 0..1.
        rest_correlation: of the responses with the examinees' shares on the other items, -1..1; NaN where one
            of the two is the same for all. Below 0, weaker examinees get the item right more often.
        information: its mean information at the examinees' abilities.
        twin, twin_phi: the item whose responses correlate with its own most, and how much; "" and
            NaN for none.
        note: why it is doubted; "" where it is not.
    """

    rank: int
    share: float
    rest_correlation: float
    information: float
    twin: str
    twin_phi: float
    note: str


@dataclass(frozen=True, eq=False)
class FittedExam:
    """An exam and its fit."""

    exam: Exam
    fit: Fit

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The indices of the examinees, best first; ties by name."""
        names = self.exam.examinees
        return np.array(
            sorted(
                range(len(names)),
                key=lambda examinee_index: (
                    -round(float(self.fit.theta[examinee_index]), CERTAIN_DIGITS),
                    names[examinee_index],
                ),
            ),
            np.intp,
        )

    @cached_property
    def quality(self) -> tuple[ItemQuality, ...]:
        """The quality of each item, in the exam's order."""
        exam, fitted = self.exam, self.fit
        same = constant(exam.values)
        rank = np.empty(len(exam.items), int)
        rank[least_discriminating(fitted, same)] = np.arange(1, len(exam.items) + 1)
        information = item_information(fitted.theta, fitted.a, fitted.b, fitted.c).mean(axis=0)
        share_of_mean = information / information.mean() if information.any() else np.ones_like(information)
        rest = rest_correlations(exam.values)
        twins, phis = likest(exam.values)
        shares = np.nanmean(exam.values, axis=0)
        return tuple(
            ItemQuality(
                int(rank[n]),
                float(shares[n]),
                float(rest[n]),
                float(information[n]),
                exam.items[twins[n]] if twins[n] >= 0 else "",
                float(phis[n]),
                _note(shares[n], rest[n], share_of_mean[n], phis[n]),
            )
            for n in range(len(exam.items))
        )

    def interval(self, examinee_index: int) -> tuple[float, float]:
        """The 95% interval of an examinee's ability; NaN without a standard error."""
        half = Z_95 * float(self.fit.se_theta[examinee_index])
        return float(self.fit.theta[examinee_index]) - half, float(self.fit.theta[examinee_index]) + half


def _note(share: float, rest: float, information: float, phi: float) -> str:
    if share in (0, 1):
        return "all got it right" if share else "no one got it right"
    doubts = []
    if rest < 0:
        doubts.append("weaker examinees get it right more often")
    if information < UNINFORMATIVE:
        doubts.append("uninformative")
    if phi >= REDUNDANT:
        doubts.append("redundant")
    return ", ".join(doubts)


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


def likest(values: Floats) -> tuple[NDArray[np.intp], Floats]:
    """For each item, the index of the item with the highest phi of responses, and that phi.

    phi is Pearson's correlation of two yes-or-no variables, here over the examinees that responded to both.
    Of several the first counts. -1 and NaN if missing: an item that fewer than LEAST_EITHER
    examinees got right, or wrong, would be like any other for which it was the same few.
    """
    responded = (~np.isnan(values)).astype(np.float64)
    right = np.where(responded > 0, values, 0.0)
    n_items = values.shape[1]
    likest_items = np.full(n_items, -1, np.intp)
    phis = np.full(n_items, np.nan)
    # A block of items with all others at once: thousands of items would need a matrix of gigabytes.
    for start in range(0, n_items, 512):
        block = slice(start, min(start + 512, n_items))
        r, g = right[:, block], responded[:, block]
        both, hits = g.T @ responded, r.T @ right
        # Right responses to either item of a pair, and wrong ones, of those who responded to both.
        right_own, right_other = r.T @ responded, g.T @ right
        wrong_own, wrong_other = both - right_own, both - right_other
        least = np.minimum(np.minimum(right_own, wrong_own), np.minimum(right_other, wrong_other))
        spread = np.where(least >= LEAST_EITHER, right_own * wrong_own * right_other * wrong_other, 0.0)
        phi = np.divide(
            both * hits - right_own * right_other,
            np.sqrt(spread),
            out=np.full(both.shape, -np.inf),
            where=spread > 0,
        )
        rows = np.arange(block.stop - start)
        phi[rows, start + rows] = -np.inf
        best = phi.argmax(axis=1)
        highest = phi[rows, best]
        is_finite = np.isfinite(highest)
        likest_items[block] = np.where(is_finite, best, -1)
        phis[block] = np.where(is_finite, highest, np.nan)
    return likest_items, phis
