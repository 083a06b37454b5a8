"""From automatic labels to the scale of the official judgments, by a rule that can be stated in a line."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
RuleName = Literal["identity", "thresholds", "fitted"]

#: A fit that would have to try more rules than this is refused.
MOST_RULES = 200_000


@dataclass(frozen=True)
class ScaleMap:
    """A rule that gives an official label for an automatic one. Greater labels never get smaller ones.

    Attributes:
        rule: "identity", "thresholds" or "fitted".
        lowest: the official label of automatic labels below every cut.
        cuts: (automatic label, official label), both rising: from that automatic label on, that official
            one. Empty for "identity".
        n_both: how many passages it was fitted on; 0 where it was not.
        kappa: quadratic-weighted kappa on those, -1..1.
    """

    rule: str
    lowest: int = 0
    cuts: tuple[tuple[int, int], ...] = ()
    n_both: int = 0
    kappa: float = float("nan")

    def __call__(self, label: int) -> int:
        """The official label for an automatic one."""
        if self.rule == "identity":
            return label
        return max((to for least, to in self.cuts if label >= least), default=self.lowest)

    def __str__(self) -> str:
        """The rule in words, for a report or a sidecar."""
        if self.rule == "identity":
            return "identity: the automatic label, unchanged"
        parts = [f"below {self.cuts[0][0]}: {self.lowest}"] if self.cuts else [f"always {self.lowest}"]
        parts += [f"from {least}: {to}" for least, to in self.cuts]
        fit = f" on {self.n_both:,} passages (weighted kappa {self.kappa:.2f})" if self.n_both else ""
        return f"{self.rule}{fit}: {', '.join(parts)}"


IDENTITY = ScaleMap("identity")


def thresholds(cuts: Mapping[int, int]) -> ScaleMap:
    """The rule with these cuts: from automatic label on -> official label.

    Raises:
        ValueError: no cuts, or a greater automatic label would get a smaller official one.
    """
    ordered = tuple(sorted(cuts.items()))
    if not ordered:
        raise ValueError("give at least one LABEL=OFFICIAL")
    if ordered[0][1] < 0:
        raise ValueError(
            f"official labels must not fall as labels rise: {ordered[0][0]}={ordered[0][1]} is below the "
            "0 of lower labels"
        )
    for (label, official), (next_label, next_official) in pairwise(ordered):
        if next_official < official:
            raise ValueError(
                f"official labels must not fall as labels rise: {label}={official} and then "
                f"{next_label}={next_official}"
            )
    return ScaleMap("thresholds", 0, ordered)


def fitted(labels: Sequence[int], judgments: Sequence[int]) -> ScaleMap:
    """The rule that agrees best with human judgments of the same passages.

    Of all rules that never give a greater automatic label a smaller official one, that with the greatest
    quadratic-weighted kappa (Cohen, "Weighted kappa: nominal scale agreement provision for scaled
    disagreement or partial credit", Psychological Bulletin 70, 1968); of equally good ones that which
    gives the smaller labels. Unlike a rule of most exact hits it does not give every passage the most
    frequent judgment. Official labels are those that are in `judgments`.

    Args:
        labels, judgments: of the same passages.

    Raises:
        ValueError: there are no passages, a judgment is negative, they have a single official or automatic
            label, or there are too many labels to try all rules.
    """
    automatic = np.asarray(labels, np.int64)
    human = np.asarray(judgments, np.int64)
    if automatic.shape != human.shape:
        raise ValueError(f"{len(automatic)} labels and {len(human)} judgments don't fit")
    if not len(human):
        raise ValueError("no passage has both an automatic and an official label")
    if human.min() < 0:
        raise ValueError(f"{human.min()} is not a judgment")
    levels, column = np.unique(human, return_inverse=True)
    seen, row = np.unique(automatic, return_inverse=True)
    if len(levels) < 2 or len(seen) < 2:
        which, only = ("official", levels) if len(levels) < 2 else ("automatic", seen)
        raise ValueError(f"the {len(human):,} passages with both have no {which} label but {only[0]}")
    table = np.zeros((len(seen), len(levels)), np.int64)
    np.add.at(table, (row, column), 1)
    # `starts[i]` is the row from which level i + 1 is given; len(seen) is never.
    steps = range(len(seen), -1, -1)
    n_rules = math.comb(len(seen) + len(levels) - 1, len(levels) - 1)
    if n_rules > MOST_RULES:
        raise ValueError(f"{len(seen)} automatic and {len(levels)} official labels are too many to fit")
    best, best_starts = -np.inf, (len(seen),) * (len(levels) - 1)
    for falling in itertools.combinations_with_replacement(steps, len(levels) - 1):
        kappa = _weighted_kappa(table, falling[::-1], levels)
        if kappa > best + 1e-12:
            best, best_starts = kappa, falling[::-1]
    cuts: dict[int, int] = {}
    for start, level in zip(best_starts, levels[1:].tolist(), strict=True):
        if start < len(seen):
            cuts[int(seen[start])] = level
    lowest = int(levels[0])
    if int(seen[0]) in cuts:
        lowest = cuts.pop(int(seen[0]))
    return ScaleMap("fitted", lowest, tuple(sorted(cuts.items())), len(human), float(best))


def _weighted_kappa(table: Ints, starts: Sequence[int], levels: Ints) -> float:
    """Of the rule that gives level i + 1 from row starts[i] on."""
    level_of_row = np.add.reduce([np.arange(len(table)) >= start for start in starts])
    merged = np.zeros((len(levels), len(levels)))
    np.add.at(merged, level_of_row, table)
    weights = (levels[:, None] - levels[None, :]) ** 2.0
    expected = np.outer(merged.sum(axis=1), merged.sum(axis=0)) / merged.sum()
    chance = float((weights * expected).sum())
    return 1 - float((weights * merged).sum()) / chance if chance else 0.0
