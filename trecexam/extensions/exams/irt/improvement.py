"""Iterative improvement of an exam: drop the least discriminating items, fit again on the rest."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trecexam.extensions.exams.irt.components import Components
from trecexam.extensions.exams.irt.fitting import Fit, check, constant, fit
from trecexam.extensions.exams.irt.model import item_information
from trecexam.extensions.exams.irt.settings import CERTAIN_DIGITS, Settings

#: Minimum number of items of an exam.
LEAST_ITEMS = 2


@dataclass(frozen=True, eq=False)
class ImprovementStep:
    """A step of an improvement.

    Attributes:
        items: column indices, in the first matrix, of remaining items.
        dropped: column indices of items dropped in this step, least discriminating first.
        fit: the fit to these items.
        information, compat: the mean over the examinees' abilities of an item's mean information, and of its
            2PL form (`trecexam.extensions.exams.irt.model.item_information`).
    """

    items: NDArray[np.intp]
    dropped: NDArray[np.intp]
    fit: Fit
    information: float
    compat: float


@dataclass(frozen=True, eq=False)
class Improvement:
    """Steps from the whole exam on, and the reason for the end."""

    steps: tuple[ImprovementStep, ...]
    stopped: str


def improve(
    responses: ArrayLike,
    settings: Settings | None = None,
    components: Components | None = None,
    *,
    steps: int = 5,
    drop: float = 0.1,
    progress: Callable[[int, int], None] | None = None,
) -> Improvement:
    """Drop the least discriminating share of the items and fit the rest again, repeatedly.

    Each fit starts anew and equals `fit` on the same items. `least_discriminating` selects the items to drop.

    Args:
        responses, settings, components: as in `trecexam.extensions.exams.irt.fitting.fit`.
        steps: number of steps, at least 1.
        drop: share of remaining items to drop per step, above 0 and below 1; rounded, at least one item.
        progress: called after each fit with (fits done, fits in all).

    Raises:
        ValueError: as `fit`, or an impossible argument.
    """
    if steps < 1 or not 0 < drop < 1:
        raise ValueError(f"steps {steps}, drop {drop:g}: give at least one step, and a share between 0 and 1")
    values = check(responses)
    items: NDArray[np.intp] = np.arange(values.shape[1])
    show = progress or (lambda done, of: None)
    show(0, steps + 1)
    done = [_step(values, items, items[:0], settings, components)]
    show(1, steps + 1)
    stopped = f"all {steps} requested steps are done"
    for _ in range(steps):
        split = _split_off_worst(values, done[-1], drop)
        if isinstance(split, str):
            stopped = split
            break
        kept_items, dropped_items = split
        done.append(_step(values, kept_items, dropped_items, settings, components))
        show(len(done), steps + 1)
    return Improvement(tuple(done), stopped)


def _split_off_worst(
    values: NDArray[np.float64], last: ImprovementStep, drop: float
) -> tuple[NDArray[np.intp], NDArray[np.intp]] | str:
    """Return the items that the next step keeps and drops, or the reason why there is no next step."""
    count = n_dropped(len(last.items), drop)
    if len(last.items) - count < LEAST_ITEMS:
        return f"fewer than {LEAST_ITEMS} items would remain"
    worst = least_discriminating(last.fit, constant(values[:, last.items]))[:count]
    kept_items = np.delete(last.items, worst)
    return _unfit(values[:, kept_items]) or (kept_items, last.items[worst])


def n_dropped(n_items: int, drop: float) -> int:
    """Return the number of items that a step drops: the share, rounded (halves up), at least one."""
    return max(1, math.floor(n_items * drop + 0.5 + 1e-9))


def least_discriminating(fitted: Fit, constant_items: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the indices of the items, least discriminating first.

    Items that all or none got right come first, since their a is unknown. Then the order is by a; by mean
    information at the examinees' abilities, since many items share a's lower bound; and last item first.
    Values that agree to `CERTAIN_DIGITS` are ties.
    """
    information = item_information(fitted.theta, fitted.a, fitted.b, fitted.c).mean(axis=0)
    a = np.round(fitted.a, CERTAIN_DIGITS)
    # Three significant digits, since items at the lower bound of a all have little information.
    information = np.array([float(f"{value:.{CERTAIN_DIGITS - 1}e}") for value in information.tolist()])
    return np.lexsort((-np.arange(len(a)), information, a, ~constant_items))


def _step(
    values: NDArray[np.float64],
    items: NDArray[np.intp],
    dropped: NDArray[np.intp],
    settings: Settings | None,
    components: Components | None,
) -> ImprovementStep:
    fitted = fit(values[:, items], settings, components)
    exact, compat = (
        float(item_information(fitted.theta, fitted.a, fitted.b, fitted.c, compat=form).mean())
        for form in (False, True)
    )
    return ImprovementStep(items, dropped, fitted, exact, compat)


def _unfit(values: NDArray[np.float64]) -> str:
    """Return the reason why no model can be fitted to the rest, or ""."""
    try:
        check(values)
    except ValueError as error:
        return f"no model can be fitted to the items that would remain: {error}"
    return ""
